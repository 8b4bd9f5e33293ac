fuse_test.cxxflags := $(call pkg_cflags,fuse3)
$(eval $(call gtest,fuse_test,$(wildcard tests/fuse/*_test.cc),graphlane_fuse iomgr))
