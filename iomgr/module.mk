iomgr.ldlibs := $(fmt_libs) $(uring_libs)
# What libgraphlane-share and libgraphlane-graph have of it, and what the second has besides.
iomgr.share := $(call sources_named,iomgr,error file_io progress size size_text stub terminal)
iomgr.kit := $(call sources_named,iomgr,aio_queue cache cache_budget cache_hold cache_policy calibration crc32c_long \
  device_kind file_attributes home io_queue json json_view lane lane_io lane_queue lanes mapped_cache \
  mount_table open_size orphans ownership page_reader paged_files never_synced part_files part_record part_record_io part_sums parts \
  promises atomic_file striped_file stub_copies stub_lock sum_file sum_format sync_queue tree unwritten uring_queue uuid verify volume volume_fields \
  volume_files volume_json word_packing)
$(eval $(call library,iomgr,$(call sources_below,iomgr)))
