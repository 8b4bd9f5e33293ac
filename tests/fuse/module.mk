fuse_test.cxxflags := $(call pkg_cflags,fuse3)
$(eval $(call gtest,fuse_test,$(call sources_below,tests/fuse),graphlane_fuse iomgr))
