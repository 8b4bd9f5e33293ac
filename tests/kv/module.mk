$(eval $(call gtest,kv_test,$(wildcard tests/kv/*_test.cc),kv graph graphfmt iomgr))
