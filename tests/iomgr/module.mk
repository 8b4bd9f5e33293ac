$(eval $(call gtest,iomgr_test,$(wildcard tests/iomgr/*/*_test.cc) $(wildcard tests/iomgr/*_test.cc),iomgr))
