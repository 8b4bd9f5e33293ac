$(eval $(call library,graph,$(wildcard adapters/graph/*.cc)))

# libgraphlane-graph, static and shared: what reads a stored graph, runs vertex programs over it, and is a store of keys and values, with all that this needs of
# the folders below, position-independent. `make install-graph` builds it.
graph_kit_names := progress terminal size size_text aio_queue cache cache_budget cache_hold cache_policy calibration crc32c_long \
  device_kind error file_attributes file_io home io_queue json json_view lane lane_io lane_queue lanes mapped_cache \
  mount_table open_size orphans ownership page_reader paged_files never_synced part_files part_record part_record_io part_sums parts \
  promises atomic_file striped_file stub stub_copies stub_lock sum_file sum_format sync_queue tree unwritten uring_queue uuid verify volume volume_fields volume_files \
  volume_json word_packing
graph_kit_iomgr := $(call sources_named,iomgr,$(graph_kit_names))
graph_kit_graphfmt := $(patsubst %,graphfmt/%.cc,byte_column codec/codec codec/codec_reference codec/codec_simd codec/codec_varint codec/weight_codec graph_directory graph_header sort/line \
  list_index lists/lists pages/page_packer pages/page_store pages/store_head pages/store_writer stored_files)
graph_kit_adapters := $(patsubst %,adapters/%.cc,graph/graph graph/worker_pool semiext/list_loader semiext/list_runs graph/kit/c_api \
  graph/kit/kv_c_api kv/kv_reader kv/kv_store kv/page_buffer kv/cache/eviction kv/cache/value_cache)
GRAPH_OBJECTS := $(foreach folder,iomgr graphfmt adapters,$(call objects_in,$(PLAIN)/graph,$(folder),$(graph_kit_$(folder))))
GRAPH_LIBRARIES := $(addprefix $(PLAIN)/lib/,libgraphlane-graph.a libgraphlane-graph.so)

define compile_graph_kit
	@mkdir -p $(@D)
	$(call say,CXX,$< (graph))
	$(Q)$(CXX) $(CPPFLAGS) -std=c++20 -O2 -g1 -pthread $(WARN) -fPIC -MMD -MP -c -o $@ $<
endef
$(PLAIN)/graph/obj/%.o: %.cc
	$(compile_graph_kit)
$(PLAIN)/graph/unity/%.o: $(PLAIN)/graph/unity/%.cc
	$(compile_graph_kit)

$(PLAIN)/lib/libgraphlane-graph.a: $(GRAPH_OBJECTS)
	@mkdir -p $(@D)
	$(call say,AR,$@)
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$(PLAIN)/lib/libgraphlane-graph.so: $(GRAPH_OBJECTS) adapters/graph/kit/exports.map
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CXX) -shared -o $@ $(GRAPH_OBJECTS) -Wl,-z,defs -Wl,-Bsymbolic \
	  -Wl,--version-script=adapters/graph/kit/exports.map -Wl,-soname,libgraphlane-graph.so.0 $(fmt_libs) $(uring_libs) -pthread

-include $(GRAPH_OBJECTS:.o=.d)

# Vertex programs include the engine, and what that includes of the project: below include/graphlane.
graph_kit_headers = $(filter %.h,$(shell $(CXX) $(CPPFLAGS) -std=c++20 -MM -x c++ adapters/semiext/engine.h))

.PHONY: install-graph uninstall-graph
install-graph: $(GRAPH_LIBRARIES)
	install -d $(addprefix $(DESTDIR),$(LIBDIR)/pkgconfig $(PREFIX)/include)
	install -m 644 $(wildcard adapters/graph/kit/graphlane_*.h*) $(DESTDIR)$(PREFIX)/include
	for header in $(graph_kit_headers); do \
	  install -D -m 644 $$header $(DESTDIR)$(PREFIX)/include/graphlane/$$header || exit 1; \
	done
	find $(DESTDIR)$(PREFIX)/include/graphlane -type d -exec chmod a+rx {} +
	install -m 644 $(PLAIN)/lib/libgraphlane-graph.a $(DESTDIR)$(LIBDIR)
	strip --strip-debug $(DESTDIR)$(LIBDIR)/libgraphlane-graph.a
	$(call install_binary,755,$(PLAIN)/lib/libgraphlane-graph.so,$(LIBDIR)/libgraphlane-graph.so.0)
	ln -sf libgraphlane-graph.so.0 $(DESTDIR)$(LIBDIR)/libgraphlane-graph.so
	sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(LIBDIR)|' -e 's|@VERSION@|$(VERSION)|' \
	  adapters/graph/kit/graphlane-graph.pc.in > $(DESTDIR)$(LIBDIR)/pkgconfig/graphlane-graph.pc
	chmod 644 $(DESTDIR)$(LIBDIR)/pkgconfig/graphlane-graph.pc
	$(renew_ld_cache)

uninstall-graph:
	rm -f $(addprefix $(DESTDIR)$(PREFIX)/include/,graphlane_graph.h graphlane_graph.hpp graphlane_kv.h graphlane_kv.hpp)
	rm -rf $(addprefix $(DESTDIR)$(PREFIX)/include/graphlane/,adapters graphfmt iomgr)
	rm -f $(addprefix $(DESTDIR)$(LIBDIR)/,libgraphlane-graph.a libgraphlane-graph.so libgraphlane-graph.so.0 \
	  libgraphlane-graph.so.0.debug pkgconfig/graphlane-graph.pc)
	$(renew_ld_cache)
