"""Where the repository is, and the programs that `make` built."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = Path(os.environ.get("GRAPHLANE_BUILD", ROOT / "build/release"))
GRAPHLANE = BUILD / "bin/graphlane"
