# fuzz: all targets in one program, with a driver of ours. Not a GoogleTest program: test_fuzz.py runs it.
FUZZ := $(BUILD)/fuzz/fuzz
fuzz.cxxflags := -Iadapters/share/client
$(eval $(call compiled,$(BUILD),fuzz,$(wildcard tests/fuzz/*.cc) shim/locate/volume_json.cc shim/base/text.cc))
$(eval $(call linked,$(FUZZ),fuzz,share graphfmt iomgr))
.PHONY: fuzz-program
tests fuzz-program: $(FUZZ)

FUZZ_SECONDS ?= 30

.PHONY: fuzz
fuzz: deps ## feed what reads others' bytes with damaged ones, FUZZ_SECONDS each (30), as the asan build
	@$(MAKE) --no-print-directory $(JOBS) build/asan/fuzz/fuzz VARIANT=asan
	@FUZZ_SECONDS=$(FUZZ_SECONDS) exec build/venv/bin/python tests/fuzz/run.py build/asan/fuzz/fuzz
