# A command runs once: making it fast costs more than it gains.
graphlane.cxxflags := $(UNCHECKED) $(COMMANDS)
graphlane.ldlibs := $(elf_libs)
$(eval $(call program,graphlane,$(wildcard cli/*.cc),graphlane_fuse semiext hybrid kv graph graphfmt iomgr))
