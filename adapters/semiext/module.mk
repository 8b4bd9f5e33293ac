semiext.kit := $(patsubst %,adapters/semiext/%.cc,list_loader list_runs)
$(eval $(call library,semiext,$(wildcard adapters/semiext/*.cc) $(wildcard adapters/semiext/programs/*.cc)))
