"""What every test here shares: helpers by plain import, and one profile for hypothesis."""

import sys
from pathlib import Path

from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent))

# A loaded machine may be slow, and a failure should come back at the next run.
settings.register_profile("dlfield", deadline=None, derandomize=True, max_examples=150)
settings.load_profile("dlfield")
