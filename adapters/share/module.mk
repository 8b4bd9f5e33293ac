# The share kit: libgraphlane-share, static and shared, and the coordinator that jobs start.
#
# Both libraries hold what they need of the folders below, so that a program links nothing else of ours. The shared one
# exports the C interface alone.

LIBDIR ?= $(PREFIX)/lib
share.cxxflags := -DGRAPHLANE_SHARE_LIBDIR='"$(LIBDIR)"'

share_main := adapters/share/coordinator/coordinator_main.cc
share_kit := $(filter-out $(share_main),$(call sources_below,adapters/share))
# What a job has of it: all but the coordinator.
share_coordinator := $(call sources_named,adapters/share,attach_request buffer_pool chunk_size connections coordinator global_table packed_partition packed_store \
  graph_files graph_plan graph_table label_file label_keeper load_order shared_graph shared_graph_loads snapshots chunk_scheduler worker)
share.share := $(filter-out $(share_coordinator),$(share_kit))
$(eval $(call library,share,$(share_kit)))
$(eval $(call program,graphlane-share-coordinator,$(share_main),share graphfmt iomgr))
SHARE_LIBRARIES := $(addprefix $(PLAIN)/lib/,libgraphlane-share.a libgraphlane-share.so)

ifeq ($(VARIANT),release)
libgraphlane-share.exports := adapters/share/exports.map
$(eval $(call shared_library,libgraphlane-share,$(foreach name,share graphfmt iomgr,$($(name).share.objects)),$(fmt_libs)))
endif

# Where ld.so looks for libraries of /usr/local/lib; an ordinary user has none there.
renew_ld_cache = $(if $(DESTDIR),,PATH=$$PATH:/usr/sbin:/sbin ldconfig 2>/dev/null || :)

.PHONY: install-share uninstall-share
install-share: $(SHARE_LIBRARIES) $(BUILD)/bin/graphlane-share-coordinator
	install -d $(addprefix $(DESTDIR),$(LIBDIR)/graphlane $(LIBDIR)/pkgconfig $(PREFIX)/include $(PREFIX)/bin)
	install -m 644 $(wildcard adapters/share/client/graphlane_share.h*) $(DESTDIR)$(PREFIX)/include
	install -m 644 $(PLAIN)/lib/libgraphlane-share.a $(DESTDIR)$(LIBDIR)
	strip --strip-debug $(DESTDIR)$(LIBDIR)/libgraphlane-share.a
	$(call install_binary,755,$(PLAIN)/lib/libgraphlane-share.so,$(LIBDIR)/libgraphlane-share.so.0)
	ln -sf libgraphlane-share.so.0 $(DESTDIR)$(LIBDIR)/libgraphlane-share.so
	$(call install_binary,755,$(BUILD)/bin/graphlane-share-coordinator,$(LIBDIR)/graphlane/graphlane-share-coordinator)
	ln -sf $(LIBDIR)/graphlane/graphlane-share-coordinator $(DESTDIR)$(PREFIX)/bin
	sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(LIBDIR)|' -e 's|@VERSION@|$(VERSION)|' \
	  adapters/share/graphlane-share.pc.in > $(DESTDIR)$(LIBDIR)/pkgconfig/graphlane-share.pc
	chmod 644 $(DESTDIR)$(LIBDIR)/pkgconfig/graphlane-share.pc
	$(renew_ld_cache)

uninstall-share:
	rm -f $(addprefix $(DESTDIR)$(PREFIX)/,include/graphlane_share.h include/graphlane_share.hpp \
	  bin/graphlane-share-coordinator)
	rm -f $(addprefix $(DESTDIR)$(LIBDIR)/,libgraphlane-share.a libgraphlane-share.so \
	  libgraphlane-share.so.0 libgraphlane-share.so.0.debug pkgconfig/graphlane-share.pc \
	  graphlane/graphlane-share-coordinator graphlane/graphlane-share-coordinator.debug)
	$(renew_ld_cache)
