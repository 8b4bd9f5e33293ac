$(eval $(call gtest,iomgr_test,$(call sources_below,tests/iomgr),iomgr))
