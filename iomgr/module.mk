iomgr.ldlibs := $(fmt_libs) $(uring_libs)
$(eval $(call library,iomgr,$(call sources_below,iomgr)))
