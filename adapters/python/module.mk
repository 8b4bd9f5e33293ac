# The Python package `graphlane`: an extension that reads stored graphs (nanobind), and the command. `make wheel` puts both
# beside the modules of graphlane/ and packs them with setuptools. Python, nanobind and setuptools are those of
# build/venv; BUILD_PYTHON=… takes another's.

BUILD_PYTHON ?= build/venv/bin/python
PYTHON_BUILD := $(PLAIN)/python
# Asked only when the extension is built.
python_asks = $(shell $(BUILD_PYTHON) -c "$(1)")
python_includes = $(call python_asks,import sysconfig; print(sysconfig.get_path('include')))
python_suffix = $(call python_asks,import sysconfig; print(sysconfig.get_config_var('EXT_SUFFIX')))
nanobind = $(call python_asks,import nanobind; print(nanobind.__path__[0]))
nanobind_flags = -isystem $(python_includes) -isystem $(nanobind)/include -isystem $(nanobind)/ext/robin_map/include \
  -DNDEBUG -DNB_COMPACT_ASSERTIONS -fno-strict-aliasing

python_reader.python := $(patsubst %,adapters/python/src/%.cc,page_graph dual_rows bv_reader)
python_reader.cxxflags := -fvisibility=hidden
$(eval $(call compiled,$(BUILD),python_reader,$(python_reader.python)))
PYTHON_OBJECTS := $(foreach name,python_reader kv graphfmt,$($(name).python.objects))
python_flags = -std=c++20 -O2 -g1 -pthread -fPIC -fvisibility=hidden

# `make deps` fills the environment. After a change of the requirements, `make tests` does.
build/venv/.tests-requirements.txt: tests/requirements.txt
	@tests/deps
	@touch $@

$(PYTHON_BUILD)/core.o: adapters/python/src/core.cc | build/venv/.tests-requirements.txt
	@mkdir -p $(@D)
	$(call say,CXX,$< (python))
	$(Q)$(CXX) $(CPPFLAGS) $(python_flags) $(filter-out -Wshadow,$(WARN)) $(nanobind_flags) -MMD -MP -c -o $@ $<
$(PYTHON_BUILD)/nanobind.o: build/venv/.tests-requirements.txt
	@mkdir -p $(@D)
	$(call say,CXX,nanobind)
	$(Q)$(CXX) -std=c++17 -Os -fPIC -fvisibility=hidden $(nanobind_flags) -c -o $@ $(nanobind)/src/nb_combined.cpp
$(PYTHON_BUILD)/_core.so: $(PYTHON_BUILD)/core.o $(PYTHON_BUILD)/nanobind.o $(PYTHON_OBJECTS) $(PLAIN)/lib/libgraphlane-graph.a
	$(call say,LD,$@)
	$(Q)$(CXX) -shared -o $@ $^ -Wl,--gc-sections -Wl,-Bsymbolic -Wl,--exclude-libs,ALL -lfmt -luring -pthread

-include $(PYTHON_BUILD)/core.d $(PYTHON_OBJECTS:.o=.d)

# The stage has what setuptools packs; the site has the wheel as pip installs it, where the tests import it.
python_files := $(wildcard adapters/python/graphlane/*.py adapters/python/graphlane/*.pyi adapters/python/graphlane/py.typed)
pip = $(BUILD_PYTHON) -m pip -q --disable-pip-version-check
PYTHON_STAGE := $(BUILD)/python/stage
PYTHON_SITE := $(BUILD)/python/site

$(PYTHON_SITE)/.installed: $(PYTHON_BUILD)/_core.so $(BUILD)/bin/graphlane $(SHIM) $(python_files) \
    $(wildcard adapters/python/*.toml adapters/python/*.py) adapters/python/README.md
	$(call say,PIP,$(BUILD)/python/wheel)
	$(Q)rm -rf $(BUILD)/python
	@mkdir -p $(PYTHON_STAGE)/graphlane/bin $(PYTHON_STAGE)/graphlane/lib/graphlane
	$(Q)install -m 644 $(python_files) $(PYTHON_STAGE)/graphlane
	$(Q)install -m 644 adapters/python/pyproject.toml adapters/python/setup.py adapters/python/README.md LICENSE $(PYTHON_STAGE)
	$(Q)install -m 755 $(PYTHON_BUILD)/_core.so $(PYTHON_STAGE)/graphlane/_core$(python_suffix)
	$(Q)install -m 755 $(BUILD)/bin/graphlane $(PYTHON_STAGE)/graphlane/bin/graphlane
	$(Q)install -m 755 $(SHIM) $(PYTHON_STAGE)/graphlane/lib/graphlane/libgraphlane.so
	$(Q)strip --strip-unneeded $(PYTHON_STAGE)/graphlane/_core$(python_suffix) $(PYTHON_STAGE)/graphlane/bin/graphlane \
	  $(PYTHON_STAGE)/graphlane/lib/graphlane/libgraphlane.so
	$(Q)$(pip) wheel --no-build-isolation --no-deps -w $(BUILD)/python/wheel $(PYTHON_STAGE)
	$(Q)$(pip) install --no-deps --no-index --target $(PYTHON_SITE) $(BUILD)/python/wheel/*.whl
	@touch $@

.PHONY: wheel python-package
python-package: $(PYTHON_SITE)/.installed
	@: # quiet when there is nothing to do

wheel: deps ## build the Python package: build/wheel/graphlane-….whl
	@$(MAKE) --no-print-directory $(JOBS) python-package VARIANT=release
	@rm -rf build/wheel && cp -r $(BUILD)/python/wheel build/wheel
	@ls build/wheel/*.whl
