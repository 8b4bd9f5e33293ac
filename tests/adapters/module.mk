$(eval $(call gtest,share_test,$(wildcard tests/adapters/*_test.cc),share graphfmt iomgr,-lfmt))
$(eval $(call program,grid_program,tests/adapters/grid_program.cc,share graphfmt iomgr,-lfmt))
$(BUILD)/obj/tests/adapters/%.o: EXTRA_CXXFLAGS := -Iadapters/share -Iadapters/gridgraph
