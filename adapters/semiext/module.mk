$(eval $(call library,semiext,$(wildcard adapters/semiext/*.cc) $(wildcard adapters/semiext/programs/*.cc)))
