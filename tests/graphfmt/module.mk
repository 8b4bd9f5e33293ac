$(eval $(call gtest,graphfmt_test,$(wildcard tests/graphfmt/*.cc),graphfmt iomgr,-lfmt $(EDGE_LIST_LIBS)))
