$(eval $(call program,graphlane,$(wildcard cli/*.cc),graphfmt iomgr,-lfmt -lz -luring))
