$(eval $(call gtest,share_test,$(wildcard tests/adapters/*_test.cc),share graphfmt iomgr,-lfmt))
$(eval $(call program,grid_program,tests/adapters/grid_program.cc,share graphfmt iomgr,-lfmt))
$(BUILD)/obj/tests/adapters/%.o: EXTRA_CXXFLAGS := -Iadapters/share -Iadapters/gridgraph

# Written to GraphChi's interface; OpenMP, as GraphChi's are.
$(eval $(call program,shard_program,tests/adapters/shard_program.cc,share graphfmt iomgr,-lfmt -lz -fopenmp))
$(BUILD)/obj/tests/adapters/shard_program.o: EXTRA_CXXFLAGS := -fopenmp -Iadapters/graphchi -Iadapters/share \
  -Itests/adapters/graphchi
