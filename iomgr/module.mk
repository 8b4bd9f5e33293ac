$(eval $(call library,iomgr,$(wildcard iomgr/base/*.cc) $(wildcard iomgr/read/*.cc) $(wildcard iomgr/*.cc)))
