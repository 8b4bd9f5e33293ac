"""The package that `make tests` installed. Importing this module makes `import graphlane` find it."""

import sys

import pytest

from harness import BUILD

SITE = BUILD / "python/site"

if not (SITE / "graphlane").is_dir():
    pytest.skip("not applicable: the Python package is built in the release build alone", allow_module_level=True)
sys.path.insert(0, str(SITE))
