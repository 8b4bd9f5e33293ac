$(eval $(call library,graphlane_fuse,$(wildcard fuse/*.cc)))
$(BUILD)/obj/fuse/%.o: EXTRA_CXXFLAGS := $(call pkg_cflags,fuse3)
