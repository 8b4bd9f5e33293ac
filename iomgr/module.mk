$(eval $(call library,iomgr,$(wildcard iomgr/base/*.cc iomgr/read/*.cc iomgr/volume/*.cc iomgr/*.cc)))
