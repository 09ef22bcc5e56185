"""How long property tests run: briefly by default, long in `make soak` (SCHEMACTL_EXAMPLES)."""

from __future__ import annotations

import os

from hypothesis import settings

EXAMPLES = settings(max_examples=int(os.environ.get("SCHEMACTL_EXAMPLES", "25")), deadline=None)
