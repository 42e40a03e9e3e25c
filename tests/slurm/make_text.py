#!/usr/bin/env python3
"""Writes a small text for the launch tests: make_text.py FILE."""

import random
import sys
from pathlib import Path

WORDS = "in the beginning was a word and it had all ranks at one step".split()
BYTES = 1 << 16

rng = random.Random(7)
text = " ".join(rng.choice(WORDS) for _ in range(BYTES // 2))
Path(sys.argv[1]).write_text(text[:BYTES])
