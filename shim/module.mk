# libgraphlane.so, and the same objects as an archive for its unit tests.
#
# It carries its own position-independent copies of the iomgr files that it
# needs, without exceptions, and is linked by the C compiler: no libstdc++, no
# symbol of ours or of liburing but the names in calls.def. It is
# never built with a sanitizer: it lives in programs that are not. No frame is
# large, because a thread's whole stack may be 16 KiB. Its own system calls are not its hook
# of syscall() (--wrap; hooks/raw.cc).

SHIM := $(BUILD)/lib/libgraphlane.so
SHIM_ONCE := $(PLAIN)/lib/libgraphlane.so
SHIM_IOMGR := hidden_io crc32c_long file_io json_view memory_map size_text uuid open_size ownership part_record \
  part_record_io promises unwritten part_sums sum_file sum_format verify stub stub_lock volume_fields server_socket \
  share_client never_synced part_files lane_io io_queue uring_queue aio_queue sync_queue memory_limit \
  device_kind device_gate cache cache_budget cache_hold cache_policy read_stream pattern_detector read_order \
  file_sweeps plan prefetch_ledger prefetch_tracker extent_cache extent_request extent_reader kept_frames mapped_cache \
  memory_budget page_cache_share word_packing read_ahead convoy_scheduler aio_read_queue inline_engine inline_queues
# The linker wraps `syscall` for other objects than the one that defines it.
SHIM_ALONE := shim/hooks/raw_entry.cc
SHIM_OBJECTS := $(call objects_in,$(PLAIN)/shim,shim,$(filter-out $(SHIM_ALONE),$(call sources_below,shim))) \
  $(SHIM_ALONE:%.cc=$(PLAIN)/shim/obj/%.o) \
  $(call objects_in,$(PLAIN)/shim,iomgr,$(call sources_named,iomgr,$(SHIM_IOMGR)))
SHIM_CXXFLAGS := -std=c++20 -O2 -g -pthread $(WARN) -fPIC -fvisibility=hidden -fno-exceptions \
  -fno-rtti -fno-threadsafe-statics -ftls-model=initial-exec -Wframe-larger-than=2560

define compile_shim
	@mkdir -p $(@D)
	$(call say,CXX,$< (shim))
	$(Q)$(CXX) $(CPPFLAGS) $(SHIM_CXXFLAGS) -MMD -MP -c -o $@ $<
endef
$(PLAIN)/shim/obj/%.o: %.cc
	$(compile_shim)
$(PLAIN)/shim/unity/%.o: $(PLAIN)/shim/unity/%.cc
	$(compile_shim)

# Only the names of the table leave the library, whatever visibility a system
# header asks for.
$(PLAIN)/shim/exports.map: shim/hooks/calls.def
	@mkdir -p $(@D)
	$(Q)awk -F ', *' 'BEGIN { print "{ global:" } /^CALL/ { print "  " $$3 ";" } \
	  END { print "local: *; };" }' $< > $@

$(eval $(call same_in_all,$(SHIM),$(SHIM_ONCE)))
$(SHIM_ONCE): $(SHIM_OBJECTS) $(PLAIN)/shim/exports.map
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) -shared -o $@ $(SHIM_OBJECTS) -Wl,-z,defs -Wl,-Bsymbolic \
	  -Wl,--version-script=$(PLAIN)/shim/exports.map -Wl,--exclude-libs,ALL -Wl,--wrap=syscall \
	  -Wl,-soname,libgraphlane.so -l:liburing.a -ldl -pthread

-include $(SHIM_OBJECTS:.o=.d)
