# A filesystem of disk images that logs what is written to them; it knows nothing of Graphlane.
block_log.cxxflags := $(call pkg_cflags,fuse3)
block_log.ldlibs := $(call pkg,fuse3)
$(eval $(call plain_program,block_log,tests/power_cut/block_log.cc))
