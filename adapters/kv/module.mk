$(eval $(call library,kv,$(wildcard adapters/kv/*.cc) $(wildcard adapters/kv/*/*.cc)))
