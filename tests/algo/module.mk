$(eval $(call gtest,semiext_test,$(wildcard tests/algo/*_test.cc),semiext graph graphfmt iomgr))
