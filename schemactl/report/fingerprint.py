"""What makes a finding the same finding in the next run."""

from __future__ import annotations

import hashlib

from schemactl.verdicts import Finding


def fingerprint(finding: Finding) -> str:
    """32 hex digits from rule, topic, pointer, direction, versions and commit: lines may move without changing it."""
    parts = [finding.rule, str(finding.topic), finding.pointer, str(finding.direction), str(finding.against)]
    if finding.commit:
        parts.append(finding.commit.id)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]
