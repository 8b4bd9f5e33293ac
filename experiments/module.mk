# The emulated disk, and the jobs whose misses are counted. Plain, as they know nothing of Graphlane.
disk_model.ldlibs := $(fuse_libs)
$(eval $(call plain_program,disk_model,experiments/disk_model.cc))
$(eval $(call plain_program,cache_jobs,experiments/cache_jobs.cc))
