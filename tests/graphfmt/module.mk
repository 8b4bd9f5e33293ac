$(eval $(call gtest,graphfmt_test,$(wildcard tests/graphfmt/*.cc),graphfmt iomgr))
