graphlane_fuse.cxxflags := $(call pkg_cflags,fuse3)
graphlane_fuse.ldlibs := $(call pkg,fuse3)
$(eval $(call library,graphlane_fuse,$(wildcard fuse/*.cc)))
