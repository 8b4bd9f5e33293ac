$(eval $(call library,graph,$(wildcard adapters/graph/*.cc)))
