kv.kit := $(patsubst %,adapters/kv/%.cc,kv_reader kv_store page_buffer cache/eviction cache/value_cache)
kv.python := $(filter-out $(kv.kit),$(wildcard adapters/kv/*.cc))
$(eval $(call library,kv,$(wildcard adapters/kv/*.cc) $(wildcard adapters/kv/*/*.cc)))
