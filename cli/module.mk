$(eval $(call program,graphlane,$(wildcard cli/*.cc),graphlane_fuse graphfmt iomgr,-lfmt -lz \
	$(call pkg,fuse3) -luring $(call pkg,libelf)))
