$(eval $(call library,graphfmt,$(wildcard graphfmt/*.cc graphfmt/input/*.cc)))
# What graphfmt/input decompresses with.
EDGE_LIST_LIBS := -lz -lbz2 $(call pkg,liblzma libzstd liblz4)
