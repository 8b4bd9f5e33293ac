$(eval $(call gtest,share_test,$(wildcard tests/adapters/*_test.cc),share graphfmt iomgr,-lfmt))
