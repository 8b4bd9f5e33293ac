$(eval $(call library,share,$(wildcard adapters/share/*.cc)))
