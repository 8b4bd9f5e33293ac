# Stand-in engines: plain POSIX programs that know nothing of Graphlane.
engine_common := tests/engines/arguments.cc tests/engines/posix.cc

$(eval $(call plain_program,grid_engine,tests/engines/grid_engine.cc tests/engines/grid.cc \
	tests/engines/vertex_file.cc $(engine_common)))
$(eval $(call plain_program,shard_engine,tests/engines/shard_engine.cc tests/engines/sharder.cc \
	tests/engines/windows.cc $(engine_common)))
