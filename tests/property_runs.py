"""The length of property tests: short by default, long in `make soak` (SCHEMACTL_EXAMPLES)."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, Phase, settings

EXAMPLES = settings(max_examples=int(os.environ.get("SCHEMACTL_EXAMPLES", "25")), deadline=None)

REPOSITORIES = settings(
    EXAMPLES,
    max_examples=max(1, EXAMPLES.max_examples * 2 // 5),
    # Shrinking a failure would start git some thousand times.
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
"""Of examples that are each a repository and a dozen commands: fewer, of many commits. They are the same in every run, so that they
guard what they go through; `make soak` looks for other ways."""
