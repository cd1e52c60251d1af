"""What the tests of the documentation share: the real scheduler with real agents."""

import pathlib
import sys

TESTS = pathlib.Path(__file__).resolve().parent.parent
for room in ("agent", "service"):
    sys.path.insert(0, str(TESTS / room))
