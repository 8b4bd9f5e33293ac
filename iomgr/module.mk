$(eval $(call library,iomgr,$(wildcard iomgr/base/*.cc) $(wildcard iomgr/*.cc)))
