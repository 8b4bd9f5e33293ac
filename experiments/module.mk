# The emulated disk, and the jobs whose misses are counted. Plain, as they know nothing of Graphlane.
disk_model.ldlibs := $(fuse_libs)
$(eval $(call plain_program,disk_model,experiments/devices/disk_model.cc))
$(eval $(call plain_program,cache_jobs,experiments/workloads/cache_jobs.cc))

# Traces of gets, replayed on stores of adjacency lists: `make kv_replay`. LMDB and RocksDB are there if their libraries are.
has_header = $(shell echo '\#include <$(1)>' | $(CXX) -E -x c++ - >/dev/null 2>&1 && echo yes)
KV_REPLAY := $(BUILD)/experiments/kv_replay
ifneq ($(filter kv_replay %/kv_replay,$(MAKECMDGOALS)),)
kv_replay.peers := $(if $(call has_header,lmdb.h),LMDB) $(if $(call has_header,rocksdb/db.h),ROCKSDB)
endif
kv_replay.cxxflags = $(addprefix -DGRAPHLANE_WITH_,$(kv_replay.peers))
kv_replay.ldlibs = $(if $(filter LMDB,$(kv_replay.peers)),-llmdb) $(if $(filter ROCKSDB,$(kv_replay.peers)),-lrocksdb)
$(eval $(call compiled,$(BUILD),kv_replay,$(wildcard experiments/costs/kv/*.cc)))
$(eval $(call linked,$(KV_REPLAY),kv_replay,kv graph graphfmt iomgr))
.PHONY: kv_replay
kv_replay: $(KV_REPLAY)

# Lists a second that a dense iteration gets: `make dense_lists`.
$(eval $(call compiled,$(BUILD),dense_lists,experiments/costs/dense_lists.cc))
$(eval $(call linked,$(BUILD)/experiments/dense_lists,dense_lists,semiext graph graphfmt iomgr))
.PHONY: dense_lists
dense_lists: $(BUILD)/experiments/dense_lists
