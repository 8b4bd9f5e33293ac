# What graphfmt/input decompresses with.
graphfmt.ldlibs := $(fmt_libs) -lz -lbz2 $(call pkg,liblzma libzstd liblz4)
# What libgraphlane-share, libgraphlane-graph and the Python package have of it.
graphfmt.share := $(patsubst %,graphfmt/%.cc,grid/grid_read sort/line)
graphfmt.kit := $(patsubst %,graphfmt/%.cc,byte_column codec/codec codec/codec_reference codec/codec_simd codec/codec_varint codec/weight_codec graph_directory graph_header \
  list_index lists/lists pages/page_packer pages/page_store pages/store_head pages/store_writer stored_files)
graphfmt.python := $(patsubst %,graphfmt/%.cc,pages/pages dual/dual dual/dual_read)
$(eval $(call library,graphfmt,$(wildcard graphfmt/*/*.cc) $(wildcard graphfmt/*.cc)))
