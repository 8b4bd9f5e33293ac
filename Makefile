# Graphlane. `make help` lists what there is to make.
#
# Every folder's module.mk says what it builds with four words:
#   $(eval $(call library,NAME,SOURCES))              build/VARIANT/lib/libNAME.a
#   $(eval $(call program,NAME,SOURCES,LIBS,LDLIBS))  build/VARIANT/bin/NAME
#   $(eval $(call gtest,NAME,SOURCES,LIBS,LDLIBS))    build/VARIANT/tests/NAME, run by `make test`
#   $(eval $(call plain_program,NAME,SOURCES,LDLIBS)) build/VARIANT/engines/NAME, knows nothing of us
# LIBS are names of libraries above, the most dependent first.

VERSION := 0.1.0
VARIANT ?= release
PREFIX ?= /usr/local
DESTDIR ?=
BUILD := build/$(VARIANT)
PLAIN := build/plain
CXX ?= g++
CC ?= gcc
AR ?= ar
PKG_CONFIG ?= pkg-config
PYTHON ?= python3

Q := $(if $(V),,@)
say = $(if $(V),,@printf '  %-5s %s\n' '$(1)' '$(2)')

COMMANDS :=
UNCHECKED :=
TEST_CODE :=
# -g1: names and lines, for backtraces and perf; all of -g takes half as long again.
ifeq ($(VARIANT),release)
  OPTIMIZE := -O2 -g1
  COMMANDS := -O1
  TEST_CODE := -O1
else ifeq ($(VARIANT),debug)
  OPTIMIZE := -Og -g -D_GLIBCXX_ASSERTIONS
else ifeq ($(VARIANT),asan)
  OPTIMIZE := -O1 -g1 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=undefined
  UNCHECKED := -fno-sanitize=vptr,null,alignment,object-size
  TEST_CODE := -O0
else ifeq ($(VARIANT),tsan)
  OPTIMIZE := -O1 -g -fno-omit-frame-pointer -fsanitize=thread
else
  $(error VARIANT=$(VARIANT): choose release, debug, asan or tsan)
endif

# Also with those that the user gives on make's command line.
WARN := -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Wpointer-arith -Wcast-qual
override CPPFLAGS += -I. -DGRAPHLANE_VERSION='"$(VERSION)"' -D_FILE_OFFSET_BITS=64
override CXXFLAGS += -std=c++20 -pthread $(WARN) $(OPTIMIZE)
override LDFLAGS += -pthread $(filter -fsanitize=%,$(OPTIMIZE))

# What the linker is asked for, by the name of the package that brings it.
pkg = $(shell $(PKG_CONFIG) --libs $(1) 2>/dev/null)
pkg_cflags = $(shell $(PKG_CONFIG) --cflags $(1) 2>/dev/null)

.DEFAULT_GOAL := all
PROGRAMS :=
TESTS :=
ENGINES :=
OBJECTS :=

objects = $(patsubst %.cc,$(BUILD)/obj/%.o,$(1))
archives = $(foreach lib,$(1),$(BUILD)/lib/lib$(lib).a)

define library
OBJECTS += $(call objects,$(2))
$(BUILD)/lib/lib$(1).a: $(call objects,$(2))
	@mkdir -p $$(@D)
	$$(call say,AR,$$@)
	$(Q)rm -f $$@ && $(AR) rcs $$@ $$^
endef

define linked
OBJECTS += $(2)
$(1): $(2) $(3)
	@mkdir -p $$(@D)
	$$(call say,LD,$$@)
	$(Q)$(CXX) $$(LDFLAGS) -o $$@ $$^ $(4)
endef

define program
PROGRAMS += $(BUILD)/bin/$(1)
$(call linked,$(BUILD)/bin/$(1),$(call objects,$(2)),$(call archives,$(3)),$(4))
endef

define gtest
TESTS += $(BUILD)/tests/$(1)
$(call objects,$(2)): $(BUILD)/obj/tests/gtest.h.gch
$(call objects,$(2)): private override CPPFLAGS += -include $(BUILD)/obj/tests/gtest.h
$(call linked,$(BUILD)/tests/$(1),$(call objects,$(2)),$(call archives,$(3)),$(4) -lgtest -lgtest_main)
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
$(call linked,$(PLAIN)/engines/$(1),$(patsubst %.cc,$(PLAIN)/obj/%.o,$(2)),,$(3))
endef
$(PLAIN)/%: OPTIMIZE := -O2 -g1

include iomgr/module.mk graphfmt/module.mk shim/module.mk fuse/module.mk adapters/module.mk cli/module.mk \
	experiments/module.mk tests/module.mk


define compile
	@mkdir -p $(@D)
	$(call say,CXX,$<)
	$(Q)$(CXX) $(CPPFLAGS) $(CXXFLAGS) $(EXTRA_CXXFLAGS) -MMD -MP -c -o $@ $<
endef
$(BUILD)/obj/%.o: %.cc
	$(compile)
$(PLAIN)/obj/%.o: %.cc
	$(compile)

# GoogleTest and CLI11 are instantiated anew in every test and every command. Half of the
# time that this takes goes into checks of each of their pointers, or, for what compares two
# numbers or parses one line, into making it fast.
$(BUILD)/obj/tests/% $(BUILD)/obj/cli/%: override CXXFLAGS += $(UNCHECKED)
$(BUILD)/obj/cli/%: override CXXFLAGS += $(COMMANDS)
$(BUILD)/obj/tests/%: override CXXFLAGS += $(TEST_CODE)

# Its header is compiled once: every test spent two thirds of a second on it.
$(BUILD)/obj/tests/gtest.h.gch:
	@mkdir -p $(@D)
	$(call say,CXX,gtest/gtest.h)
	$(Q)echo '#include <gtest/gtest.h>' >$(@:.gch=)
	$(Q)$(CXX) $(CPPFLAGS) $(CXXFLAGS) -x c++-header -o $@ $(@:.gch=)

-include $(OBJECTS:.o=.d)

# `make test` and `make demo` build on all cores, unless -j says otherwise.
JOBS = $(if $(filter -j%,$(MAKEFLAGS)),,-j$(shell nproc))

.PHONY: all deps test check conformance demo install uninstall clean help

all: $(PROGRAMS) $(SHIM) $(SHARE_LIBRARIES) $(ENGINES) ## build everything that is installed (the default)
	@: # quiet when there is nothing to do

deps: ## install the packages and the Python environment that are missing, and say which
	@tests/deps

test: deps ## build and run all tests (VARIANT=asan and so on; GRAPHLANE_TEST_DATA=DIR for real graphs)
	@$(MAKE) --no-print-directory $(JOBS) tests VARIANT=$(VARIANT)
	@GRAPHLANE_BUILD=$(CURDIR)/$(BUILD) exec build/venv/bin/python tests/run.py $(TESTFLAGS)

.PHONY: tests
tests: all $(TESTS) # what the tests run

check: ## run the tests as debug, asan and tsan builds
	@$(MAKE) --no-print-directory test VARIANT=debug
	@$(MAKE) --no-print-directory test VARIANT=asan
	@$(MAKE) --no-print-directory test VARIANT=tsan

conformance: deps ## run strangers' test suites on a mount, as root (CONFORMANCEFLAGS="--ops 1000000 fsx"; --help)
	@$(MAKE) --no-print-directory $(JOBS) all VARIANT=$(VARIANT)
	@GRAPHLANE_BUILD=$(CURDIR)/$(BUILD) exec build/venv/bin/python -m tests.conformance $(CONFORMANCEFLAGS)

demo: deps ## show it: GRAPH=snap.txt (else R-MAT), DEVICES="d0 d1 …", GRIDGRAPH_BIN=DIR, GRAPHCHI_ROOT=DIR
	@$(MAKE) --no-print-directory $(JOBS) all VARIANT=$(VARIANT)
	@GRAPHLANE_BUILD=$(CURDIR)/$(BUILD) exec build/venv/bin/python -m experiments.demo

install: all install-share install-gridgraph install-graphchi ## install into $(DESTDIR)$(PREFIX)
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/lib/graphlane $(DESTDIR)$(PREFIX)/share/man/man1
	install -m 755 $(BUILD)/bin/graphlane $(DESTDIR)$(PREFIX)/bin/graphlane
	install -m 755 $(SHIM) $(DESTDIR)$(PREFIX)/lib/graphlane/libgraphlane.so
	install -m 644 cli/graphlane.1 $(DESTDIR)$(PREFIX)/share/man/man1/graphlane.1

uninstall: uninstall-share uninstall-gridgraph uninstall-graphchi ## remove what install put there
	rm -f $(DESTDIR)$(PREFIX)/bin/graphlane $(DESTDIR)$(PREFIX)/share/man/man1/graphlane.1
	rm -rf $(DESTDIR)$(PREFIX)/lib/graphlane

clean: ## remove what was built (the Python environment stays)
	rm -rf build/plain build/release build/debug build/asan build/tsan

help: ## print this
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))
