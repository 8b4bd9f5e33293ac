graphlane_fuse.cxxflags := $(call pkg_cflags,fuse3)
graphlane_fuse.ldlibs := $(fuse_libs)
$(eval $(call library,graphlane_fuse,$(call sources_below,fuse)))
