iomgr.ldlibs := -lfmt -luring
$(eval $(call library,iomgr,$(wildcard iomgr/*/*.cc) $(wildcard iomgr/*.cc)))
