# Headers only: what GraphChi's programs include, in place of some of its own.
GRAPHCHI_INCLUDE := $(PREFIX)/include/graphlane/graphchi

.PHONY: install-graphchi uninstall-graphchi
install-graphchi:
	for folder in . api graphlane io shards; do \
	  install -d $(DESTDIR)$(GRAPHCHI_INCLUDE)/$$folder && \
	  install -m 644 adapters/graphchi/$$folder/*.hpp $(DESTDIR)$(GRAPHCHI_INCLUDE)/$$folder || exit 1; done

uninstall-graphchi:
	rm -rf $(DESTDIR)$(GRAPHCHI_INCLUDE)
