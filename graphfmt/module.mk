# What graphfmt/input decompresses with.
graphfmt.ldlibs := $(fmt_libs) -lz -lbz2 $(call pkg,liblzma libzstd liblz4)
$(eval $(call library,graphfmt,$(wildcard graphfmt/*/*.cc) $(wildcard graphfmt/*.cc)))
