$(eval $(call gtest,experiments_test,$(wildcard tests/experiments/*/*_test.cc)))
