# Graphlane. `make help` lists what there is to make.
#
# Every folder's module.mk says what it builds with four words:
#   $(eval $(call library,NAME,SOURCES))              build/VARIANT/lib/libNAME.a
#   $(eval $(call program,NAME,SOURCES,LIBS))         build/VARIANT/bin/NAME
#   $(eval $(call gtest,NAME,SOURCES,LIBS))           build/VARIANT/tests/NAME, run by `make test`
#   $(eval $(call plain_program,NAME,SOURCES))        build/VARIANT/engines/NAME, knows nothing of us
# LIBS are names of libraries above, the most dependent first. Set before, NAME.cxxflags are flags for
# its sources alone, and NAME.ldlibs what a program needs that has it or is linked with it.
#
# A unit includes up to 24 sources of one target and is compiled as one file, which takes a quarter of
# the time: most of it goes into headers. So a name in an anonymous namespace must be unique within its
# folder. Headers that most units include are precompiled (make/pch). UNITY=0 compiles each source by
# itself, without these, for who edits.

VERSION := 0.2.0
VARIANT ?= release
UNITY ?= 1
PREFIX ?= /usr/local
DESTDIR ?=
# PORTABLE=1 links statically what differs between distributions; `make deb` does so.
PORTABLE ?=
suffix := $(if $(filter 0,$(UNITY)),-by-files)$(if $(PORTABLE),-portable)
BUILD := build/$(VARIANT)$(suffix)
PLAIN := build/plain$(suffix)
CXX ?= g++
CC ?= gcc
AR ?= ar
PKG_CONFIG ?= pkg-config
PYTHON ?= python3

Q := $(if $(V),,@)

# say KIND,WHAT: one line for each step, with how many there are, and about how long the rest takes.
# A dry run counts the steps. Compilations take nearly all of the time.
JOB_COUNT := $(shell nproc)
count_steps = $(shell MAKEFLAGS= $(MAKE) -n --no-print-directory $(MAKEOVERRIDES) STEPS=counting $(MAKECMDGOALS) \
  2>/dev/null | awk '$$2 == "STEP" { ++all; if ($$3 == "CXX") ++compiled } END { print all + 0, compiled + 0 }')
begin_steps = $(eval STEPS := $(count_steps))$(eval BEGIN_TIME := $(shell date +%s))
next_step = $(if $(STEPS),,$(begin_steps))$(eval STEPS_BEGUN += $(1))
define tell_step
@begun=$(words $(filter CXX,$(STEPS_BEGUN))) ended=$$((begun - $(JOB_COUNT))) left=0; \
  [ '$(1)' != CXX ] || [ $$ended -lt 2 ] || \
    left=$$((($$(date +%s) - $(BEGIN_TIME)) * ($(word 2,$(STEPS)) - ended) / ended)); \
  printf '[%d/%d] %-3s %s%s\n' $(words $(STEPS_BEGUN)) $(word 1,$(STEPS)) '$(1)' '$(2)' \
    "$$([ $$left -lt 5 ] || echo ", about $$left s left")"
endef
is_silent := $(V)$(findstring s,$(firstword -$(MAKEFLAGS)))
say = $(if $(filter counting,$(STEPS)),: STEP $(1),$(if $(is_silent),,$(call next_step,$(1))$(tell_step)))

COMMANDS :=
TEST_CODE :=
# -g1: names and lines, for backtraces and perf; all of -g takes half as long again.
ifeq ($(VARIANT),release)
  OPTIMIZE := -O2 -g1
  COMMANDS := -O1
  TEST_CODE := -O1
else ifeq ($(VARIANT),debug)
  OPTIMIZE := -Og -g -D_GLIBCXX_ASSERTIONS
else ifeq ($(VARIANT),asan)
  # Without the checks of every single access for null and alignment: the first is a signal in any case, the
  # second is no fault on x86. They cost a third of the compilation.
  OPTIMIZE := -O0 -g1 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=undefined \
    -fno-sanitize=vptr,null,alignment,object-size
else ifeq ($(VARIANT),tsan)
  OPTIMIZE := -O1 -g -fno-omit-frame-pointer -fsanitize=thread
else
  $(error VARIANT=$(VARIANT): choose release, debug, asan or tsan)
endif

# Also with those that the user gives on make's command line.
WARN := -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Wpointer-arith -Wcast-qual
override CPPFLAGS += $(if $(PORTABLE),-DFMT_HEADER_ONLY) -I. -DGRAPHLANE_VERSION='"$(VERSION)"' -D_FILE_OFFSET_BITS=64
override CXXFLAGS += -std=c++20 -pthread $(WARN) $(OPTIMIZE)
# The compiler collects its garbage above 1 GB, which no unit reaches: 7% of its time.
override CXXFLAGS += $(if $(findstring clang,$(CXX)),,--param ggc-min-heapsize=1000000)
override LDFLAGS += -pthread $(filter -fsanitize=%,$(OPTIMIZE))

# What the linker is asked for, by the name of the package that brings it.
pkg = $(shell $(PKG_CONFIG) --libs $(1) 2>/dev/null)
pkg_cflags = $(shell $(PKG_CONFIG) --cflags $(1) 2>/dev/null)

# The libraries whose names differ between distributions.
fmt_libs := $(if $(PORTABLE),,-lfmt)
uring_libs := $(if $(PORTABLE),-l:liburing.a,-luring)
fuse_libs := $(if $(PORTABLE),-l:libfuse3.a -ldl -lrt,$(call pkg,fuse3))
elf_libs := $(if $(PORTABLE),-l:libelf.a -lz,$(call pkg,libelf))

.DEFAULT_GOAL := all
PROGRAMS :=
TESTS :=
ENGINES :=
OBJECTS :=
PRECOMPILED :=

archives = $(foreach lib,$(1),$(BUILD)/lib/lib$(lib).a)

# sources_below FOLDER: all its sources. sources_named FOLDER,NAMES: those with these names, in whatever room they are.
sources_below = $(sort $(shell find $(1) -name '*.cc'))
sources_named = $(filter $(foreach name,$(2),%/$(name).cc),$(call sources_below,$(1)))

# objects_in FOLDER,NAME,SOURCES: the objects of a target, below FOLDER.
by_units := $(filter-out 0,$(UNITY))
objects_in = $(if $(and $(by_units),$(word 2,$(3))),$(shell make/units $(1)/unity/$(2) $(3)),$(3:%.cc=$(1)/obj/%.o))

# What shared libraries of ours have of a target: the sources NAME.share, NAME.kit and NAME.python. Each of the three
# is compiled by itself, position-independent, once for the programs and the libraries.
SHARED_PARTS := share kit python
SHARED_CODE := -fPIC -fno-semantic-interposition
shared_sources = $(foreach part,$(SHARED_PARTS),$($(1).$(part)))

# precompiled SET,HEADER,FLAGS: build/VARIANT/pch/SET.h.gch, used by units that are compiled with the same flags.
define precompiled
PRECOMPILED += $(BUILD)/pch/$(1).h
$(BUILD)/pch/$(1).h.gch: private override CXXFLAGS += $(3)
$(BUILD)/pch/$(1).h.gch: make/pch/$(2).h
	@mkdir -p $$(@D)
	$$(call say,CXX,$$< ($(1)))
	$(Q)cp $$< $(BUILD)/pch/$(1).h
	$(Q)$(CXX) $$(CPPFLAGS) $$(CXXFLAGS) -MD -MP -MF $(BUILD)/pch/$(1).h.d -MT $$@ -x c++-header -o $$@ $$<
endef
$(eval $(call precompiled,code,common))
$(eval $(call precompiled,share,common,$(SHARED_CODE)))
$(eval $(call precompiled,command,common,$(COMMANDS)))
$(eval $(call precompiled,test,test,$(TEST_CODE)))
# with_precompiled OBJECTS,SET: for the release variant. Without optimization, <emmintrin.h> within a precompiled header does
# not compile where a source wants its functions.
define with_precompiled
$(if $(and $(by_units),$(filter release,$(VARIANT))),$(1): | $(BUILD)/pch/$(2).h.gch
$(1): private override CXXFLAGS += -include $(BUILD)/pch/$(2).h)
endef

# compiled FOLDER,NAME,SOURCES,SET: sets NAME.objects, and NAME.PART.objects for each shared part.
define compiled
$(foreach part,$(SHARED_PARTS),$(eval $(2).$(part).objects := $(call objects_in,$(1),$(2)-$(part),$($(2).$(part)))))
$(2).shared := $(foreach part,$(SHARED_PARTS),$($(2).$(part).objects))
$(2).objects := $$($(2).shared) $(call objects_in,$(1),$(2),$(filter-out $(call shared_sources,$(2)),$(3)))
OBJECTS += $$($(2).objects)
$$($(2).objects): private override CXXFLAGS += $$($(2).cxxflags)
$(if $($(2).share)$($(2).kit)$($(2).python),$$($(2).shared): private override CXXFLAGS += $(SHARED_CODE))
$(if $(4),$$(eval $$(call with_precompiled,$$(filter-out $$($(2).shared),$$($(2).objects)),$(4))))
$(if $(and $(4),$($(2).share)$($(2).kit)$($(2).python)),$$(eval $$(call with_precompiled,$$($(2).shared),share)))
endef

# shared_library NAME,OBJECTS,FLAGS: build/plain/lib/NAME.a and NAME.so, which exports what NAME.exports names.
define shared_library
$(PLAIN)/lib/$(1).a: $(2)
	@mkdir -p $$(@D)
	$$(call say,AR,$$@)
	$(Q)rm -f $$@ && $(AR) rcs $$@ $$^

$(PLAIN)/lib/$(1).so: $(2) $($(1).exports)
	@mkdir -p $$(@D)
	$$(call say,LD,$$@)
	$(Q)$(CXX) -shared -o $$@ $(2) -Wl,-z,defs -Wl,-Bsymbolic -Wl,--version-script=$($(1).exports) -Wl,-soname,$(1).so.0 $(3) -pthread
endef

define library
$(call compiled,$(BUILD),$(1),$(2),code)
$(BUILD)/lib/lib$(1).a: $$($(1).objects)
	@mkdir -p $$(@D)
	$$(call say,AR,$$@)
	$(Q)rm -f $$@ && $(AR) rcs $$@ $$^
endef

# linked FILE,NAME,LIBS
define linked
$(1): $$($(2).objects) $(call archives,$(3))
	@mkdir -p $$(@D)
	$$(call say,LD,$$@)
	$(Q)$(CXX) $$(LDFLAGS) -o $$@ $$^ $(foreach name,$(2) $(3),$$($(name).ldlibs))
endef

define program
PROGRAMS += $(BUILD)/bin/$(1)
$(call compiled,$(BUILD),$(1),$(2),$(if $(and $(COMMANDS),$(filter $(COMMANDS),$($(1).cxxflags))),command,code))
$(call linked,$(BUILD)/bin/$(1),$(1),$(3))
endef

define gtest
TESTS += $(BUILD)/tests/$(1)
$(call compiled,$(BUILD),$(1),$(2),test)
$$($(1).objects): private override CXXFLAGS += $(TEST_CODE)
$(1).ldlibs += -lgtest -lgtest_main
$(call linked,$(BUILD)/tests/$(1),$(1),$(3))
endef

# What is the same in every variant is built once, and linked into each.
define same_in_all
$(1): $(2)
	@mkdir -p $$(@D)
	$(Q)ln -f $$< $$@
endef

# These are what strangers' programs are: not sanitized, or the preload library,
# which is not either, could not be loaded into them.
define plain_program
ENGINES += $(BUILD)/engines/$(1)
$(call same_in_all,$(BUILD)/engines/$(1),$(PLAIN)/engines/$(1))
$(call compiled,$(PLAIN),$(1),$(2))
$(call linked,$(PLAIN)/engines/$(1),$(1))
endef
$(PLAIN)/%: OPTIMIZE := -O2 -g1

include iomgr/module.mk graphfmt/module.mk shim/module.mk fuse/module.mk adapters/module.mk cli/module.mk \
	experiments/module.mk tests/module.mk

define compile
	@mkdir -p $(@D)
	$(call say,CXX,$<)
	$(Q)$(CXX) $(CPPFLAGS) $(CXXFLAGS) -MMD -MP -c -o $@ $<
endef
$(BUILD)/obj/%.o $(PLAIN)/obj/%.o: %.cc
	$(compile)
$(BUILD)/unity/%.o: $(BUILD)/unity/%.cc
	$(compile)
$(PLAIN)/unity/%.o: $(PLAIN)/unity/%.cc
	$(compile)

-include $(OBJECTS:.o=.d) $(PRECOMPILED:=.d)

# `make test` and `make demo` build on all cores, unless -j says otherwise.
JOBS = $(if $(filter -j%,$(MAKEFLAGS)),,-j$(JOB_COUNT))

# They are made of the release variant's objects, whatever is built.
ifneq ($(VARIANT),release)
.PHONY: of-release
of-release:
	@$(MAKE) --no-print-directory VARIANT=release $(SHARE_LIBRARIES) $(GRAPH_LIBRARIES)
$(SHARE_LIBRARIES) $(GRAPH_LIBRARIES): of-release ;
endif

.PHONY: all deps test check conformance demo deb install uninstall clean help

all: $(PROGRAMS) $(SHIM) $(SHARE_LIBRARIES) $(GRAPH_LIBRARIES) $(ENGINES) ## build everything that is installed (the default)
	@: # quiet when there is nothing to do

deps: ## install the packages and the Python environment that are missing, and say which
	@tests/deps

test: deps ## build and run all tests (VARIANT=asan and so on; GRAPHLANE_TEST_DATA=DIR for real graphs)
	@$(MAKE) --no-print-directory $(JOBS) $(if $(filter --gtest,$(TESTFLAGS)),gtests,tests) VARIANT=$(VARIANT) UNITY=$(UNITY)
	@GRAPHLANE_BUILD=$(CURDIR)/$(BUILD) exec build/venv/bin/python tests/run.py $(TESTFLAGS)

.PHONY: tests gtests
gtests: $(TESTS) $(BUILD)/bin/graphlane-share-coordinator # the GoogleTest programs, and what they start
tests: all $(TESTS) $(if $(filter release,$(VARIANT)),python-package) # what the tests run

check: ## run the tests as debug, asan and tsan builds
	@$(MAKE) --no-print-directory test VARIANT=debug
	@$(MAKE) --no-print-directory test VARIANT=asan
	@$(MAKE) --no-print-directory test VARIANT=tsan

conformance: deps ## run strangers' test suites on a mount, as root (CONFORMANCEFLAGS="--ops 1000000 fsx"; --help)
	@$(MAKE) --no-print-directory $(JOBS) all VARIANT=$(VARIANT)
	@GRAPHLANE_BUILD=$(CURDIR)/$(BUILD) exec build/venv/bin/python -m tests.conformance $(CONFORMANCEFLAGS)

.PHONY: demo-deps demo-programs
demo-deps:
	@tests/deps demo

demo-programs: $(BUILD)/bin/graphlane $(SHIM) $(BUILD)/engines/grid_engine $(BUILD)/engines/shard_engine
	@: # quiet when there is nothing to do

demo: demo-deps ## show it: GRAPH=snap.txt (else R-MAT), DEVICES="d0 d1 …", GRIDGRAPH_BIN=DIR, GRAPHCHI_ROOT=DIR
	@$(MAKE) --no-print-directory $(JOBS) demo-programs VARIANT=$(VARIANT)
	@GRAPHLANE_BUILD=$(CURDIR)/$(BUILD) exec build/venv/bin/python -m experiments.demo

# install_binary MODE,FILE,TO: stripped. DEBUG_INFO=1 puts what was taken away beside it, in TO.debug.
define install_binary
install -m $(1) $(2) $(DESTDIR)$(3)
$(if $(DEBUG_INFO),objcopy --only-keep-debug $(2) $(DESTDIR)$(3).debug && chmod 644 $(DESTDIR)$(3).debug)
strip --strip-unneeded $(DESTDIR)$(3)
$(if $(DEBUG_INFO),objcopy --add-gnu-debuglink=$(DESTDIR)$(3).debug $(DESTDIR)$(3))
endef

MANUAL := $(wildcard cli/man/*.1)
COMPLETIONS := share/bash-completion/completions/graphlane share/zsh/site-functions/_graphlane \
  share/fish/vendor_completions.d/graphlane.fish
shell_of = $(word 2,$(subst /, ,$(subst -completion,,$(1))))

install: all install-share install-gridgraph install-graphchi install-graph ## install into $(DESTDIR)$(PREFIX); DEBUG_INFO=1 for gdb
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/lib/graphlane $(DESTDIR)$(PREFIX)/share/man/man1
	$(call install_binary,755,$(BUILD)/bin/graphlane,$(PREFIX)/bin/graphlane)
	install -d $(DESTDIR)$(PREFIX)/sbin
	ln -sf ../bin/graphlane $(DESTDIR)$(PREFIX)/sbin/fsck.fuse.graphlane
	$(call install_binary,755,$(SHIM),$(PREFIX)/lib/graphlane/libgraphlane.so)
	ln -sf ../bin/graphlane $(DESTDIR)$(PREFIX)/sbin/mount.graphlane
	install -m 644 $(MANUAL) $(DESTDIR)$(PREFIX)/share/man/man1
	for engine in grid_engine shard_engine; do \
	  install -m 755 $(BUILD)/engines/$$engine $(DESTDIR)$(PREFIX)/lib/graphlane && \
	  strip --strip-unneeded $(DESTDIR)$(PREFIX)/lib/graphlane/$$engine || exit 1; \
	done
	install -d $(addprefix $(DESTDIR)$(PREFIX)/,$(dir $(COMPLETIONS)) lib/systemd/system)
	$(foreach file,$(COMPLETIONS),$(BUILD)/bin/graphlane completion $(call shell_of,$(file)) > $(DESTDIR)$(PREFIX)/$(file) && \
	  chmod 644 $(DESTDIR)$(PREFIX)/$(file) &&) :
	sed 's|@PREFIX@|$(PREFIX)|' make/packages/graphlane-serve@.service.in > $(DESTDIR)$(PREFIX)/lib/systemd/system/graphlane-serve@.service
	chmod 644 $(DESTDIR)$(PREFIX)/lib/systemd/system/graphlane-serve@.service

uninstall: uninstall-share uninstall-gridgraph uninstall-graphchi uninstall-graph ## remove what install put there
	rm -f $(addprefix $(DESTDIR)$(PREFIX)/,bin/graphlane bin/graphlane.debug sbin/fsck.fuse.graphlane sbin/mount.graphlane \
	  $(MANUAL:cli/man/%=share/man/man1/%) lib/systemd/system/graphlane-serve@.service $(COMPLETIONS))
	rm -rf $(DESTDIR)$(PREFIX)/lib/graphlane

deb: ## build Debian packages in build/deb for Debian 12 and 13, Ubuntu 24.04 and newer
	@$(MAKE) --no-print-directory $(JOBS) all PORTABLE=1 PREFIX=/usr
	@make/packages/deb build/deb $(VERSION)

DOCS := build/docs
$(DOCS)/venv/.made: docs/requirements.txt
	@mkdir -p $(DOCS)
	$(Q)$(PYTHON) -m venv $(DOCS)/venv
	$(Q)$(DOCS)/venv/bin/pip -q --disable-pip-version-check install -r $<
	$(Q)touch $@

.PHONY: objects by-files
# PART=0 to 7: an eighth of them.
checked := $(filter-out %_test.o,$(OBJECTS))
objects: $(if $(PART),$(shell printf '%s\n' $(checked) | awk 'NR % 8 == $(PART)'),$(checked))
by-files: ## check that every source but the tests' compiles by itself, as UNITY=0 builds it; makes no code
	@$(MAKE) --no-print-directory $(JOBS) objects UNITY=0 OPTIMIZE=-fsyntax-only PART=$(PART)

.PHONY: docs
docs: $(DOCS)/venv/.made ## build this project's site in build/docs/site (needs mandoc and the network, once)
	@$(PYTHON) docs/pages.py $(DOCS)/pages
	@NO_MKDOCS_2_WARNING=1 $(DOCS)/venv/bin/mkdocs -q build -f docs/mkdocs.yml
	@echo $(DOCS)/site/index.html

.PHONY: lint
lint: ## look for mistakes in format, locks, Python and its types, scripts, words and manual pages (needs the network, once)
	@make/lint

.PHONY: tidy
tidy: ## look for mistakes in all C++ by clang-tidy (lint looks at the folders with locks)
	@make/lint --tidy

.PHONY: format
format: ## format the C++ sources as .clang-format says
	@make/lint --format

clean: ## remove what was built (the Python environment stays)
	rm -rf build/deb $(DOCS)/pages $(DOCS)/site $(foreach built,plain release debug asan tsan,build/$(built) build/$(built)-by-files build/$(built)-portable)

help: ## print this
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))
