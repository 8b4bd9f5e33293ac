iomgr.ldlibs := $(fmt_libs) $(uring_libs)
$(eval $(call library,iomgr,$(wildcard iomgr/*/*.cc) $(wildcard iomgr/*.cc)))
