$(eval $(call library,hybrid,$(wildcard adapters/hybrid/*.cc) $(wildcard adapters/hybrid/programs/*.cc)))
