# Plain programs, which know nothing of Graphlane.
parity.cxxflags := -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2 -O2
$(eval $(call plain_program,parity,tests/shim/parity.cc))
$(eval $(call plain_program,allocations,tests/shim/allocations.cc))
$(eval $(call plain_program,listing,tests/shim/listing.cc))
$(eval $(call plain_program,hazards,tests/shim/hazards.cc))
$(eval $(call plain_program,streams,tests/shim/streams.cc))
$(eval $(call plain_program,storm,tests/shim/storm.cc))
