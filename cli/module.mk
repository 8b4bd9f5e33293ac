$(eval $(call program,graphlane,$(wildcard cli/*.cc),graphlane_fuse semiext graph graphfmt iomgr,-lfmt $(EDGE_LIST_LIBS) \
	$(call pkg,fuse3) -luring $(call pkg,libelf)))
