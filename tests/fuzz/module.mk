# fuzz: all targets in one program, with a driver of ours, or (make fuzz, where there is clang) with
# libFuzzer's. Not a GoogleTest program: test_fuzz.py runs it.
FUZZ := $(BUILD)/fuzz/fuzz
FUZZ_SOURCES := $(filter-out tests/fuzz/libfuzzer.cc tests/fuzz/main.cc,$(wildcard tests/fuzz/*.cc)) \
  tests/fuzz/$(if $(FUZZ_ENGINE),$(FUZZ_ENGINE),main).cc
fuzz.cxxflags := -Iadapters/share
$(eval $(call compiled,$(BUILD),fuzz,$(FUZZ_SOURCES)))
$(eval $(call linked,$(FUZZ),fuzz,share graphfmt iomgr))
tests: $(FUZZ)

FUZZ_SECONDS ?= 30
# 14 does not compile the ranges of libstdc++ 12.
CLANGXX ?= $(shell command -v clang++-19 || command -v clang++-16)

.PHONY: fuzz
fuzz: deps ## feed what reads others' bytes with damaged ones, FUZZ_SECONDS each (30)
ifneq ($(CLANGXX),)
	@$(MAKE) --no-print-directory $(JOBS) build/fuzz/fuzz/fuzz BUILD=build/fuzz FUZZ_ENGINE=libfuzzer \
	  CXX=$(CLANGXX) OPTIMIZE='-O1 -g1 -fsanitize=address,undefined,fuzzer-no-link' WARN=-w \
	  LDFLAGS='-fsanitize=address,undefined,fuzzer'
	@FUZZ_SECONDS=$(FUZZ_SECONDS) exec build/venv/bin/python tests/fuzz/run.py --libfuzzer build/fuzz/fuzz/fuzz
else
	@$(MAKE) --no-print-directory $(JOBS) build/asan/fuzz/fuzz VARIANT=asan
	@FUZZ_SECONDS=$(FUZZ_SECONDS) exec build/venv/bin/python tests/fuzz/run.py build/asan/fuzz/fuzz
endif
