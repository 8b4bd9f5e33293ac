$(eval $(call library,graphfmt,$(wildcard graphfmt/*.cc)))
