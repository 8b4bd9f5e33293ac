# Headers only: what GridGraph's programs include, in place of its own core/.
GRIDGRAPH_INCLUDE := $(PREFIX)/include/graphlane/gridgraph/core

.PHONY: install-gridgraph uninstall-gridgraph
install-gridgraph:
	install -d $(DESTDIR)$(GRIDGRAPH_INCLUDE)
	install -m 644 $(wildcard adapters/gridgraph/core/*.hpp) $(DESTDIR)$(GRIDGRAPH_INCLUDE)

uninstall-gridgraph:
	rm -rf $(DESTDIR)$(PREFIX)/include/graphlane/gridgraph
