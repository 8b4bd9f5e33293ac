$(eval $(call gtest,fuse_test,$(wildcard tests/fuse/*_test.cc),graphlane_fuse iomgr,$(call pkg,fuse3) -lfmt -luring))
$(BUILD)/obj/tests/fuse/%.o: EXTRA_CXXFLAGS := $(call pkg_cflags,fuse3)
