$(eval $(call gtest,iomgr_test,$(wildcard tests/iomgr/*_test.cc tests/iomgr/volume/*_test.cc),iomgr,-lfmt -luring))
