# The emulated disk. Plain, as it knows nothing of Graphlane.
$(eval $(call plain_program,disk_model,experiments/disk_model.cc,$(call pkg,fuse3)))
