# A command runs once: making it fast costs more than it gains.
graphlane.cxxflags := $(COMMANDS)
graphlane.ldlibs := $(elf_libs)
$(eval $(call program,graphlane,$(call sources_below,cli),graphlane_fuse semiext hybrid kv graph graphfmt iomgr))
