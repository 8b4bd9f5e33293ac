graph.kit := $(patsubst %,adapters/graph/%.cc,graph worker_pool)
$(eval $(call library,graph,$(wildcard adapters/graph/*.cc)))

# libgraphlane-graph, static and shared: what reads a stored graph, runs vertex programs over it, and is a store of keys and
# values. Each folder's module.mk says what it has of that folder. `make install-graph` installs it.
graph_api.kit := $(wildcard adapters/graph/kit/*.cc)
$(eval $(call compiled,$(BUILD),graph_api,$(graph_api.kit)))
GRAPH_LIBRARIES := $(addprefix $(PLAIN)/lib/,libgraphlane-graph.a libgraphlane-graph.so)

ifeq ($(VARIANT),release)
libgraphlane-graph.exports := adapters/graph/kit/exports.map
$(eval $(call shared_library,libgraphlane-graph,$(foreach name,iomgr graphfmt,$($(name).share.objects)) \
  $(foreach name,iomgr graphfmt graph semiext kv graph_api,$($(name).kit.objects)),$(fmt_libs) $(uring_libs)))
endif

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
