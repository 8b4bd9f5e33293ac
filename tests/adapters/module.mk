share_test.cxxflags := -Iadapters/share/client -Iadapters/gridgraph
$(eval $(call gtest,share_test,$(wildcard tests/adapters/*_test.cc),share graphfmt iomgr))
grid_program.cxxflags := $(share_test.cxxflags)
$(eval $(call program,grid_program,tests/adapters/grid_program.cc,share graphfmt iomgr))

# Written to GraphChi's interface; OpenMP, as GraphChi's are.
shard_program.cxxflags := -fopenmp -Iadapters/graphchi -Iadapters/share/client -Itests/adapters/graphchi
shard_program.ldlibs := -fopenmp
$(eval $(call program,shard_program,tests/adapters/shard_program.cc,share graphfmt iomgr))
