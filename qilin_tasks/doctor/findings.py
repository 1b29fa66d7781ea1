"""A finding of the doctor, and how findings are shown."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Literal

from qilin_tasks.errors import QilinTasksError

Status = Literal["ok", "warn", "fail"]
_SHOWN: dict[Status, str] = {"ok": "ok", "warn": "warn", "fail": "FAIL"}


@dataclass(frozen=True)
class Finding:
    """One line: what was looked at, how it is, and, where it is not in order, the way out."""

    check: str
    status: Status
    detail: str
    fix: str = ""

    def __str__(self) -> str:
        text = f"{self.check}: {self.detail}" + (f" -> {self.fix}" if self.fix else "")
        return f"{_SHOWN[self.status]:<5}{' '.join(text.split())}"


def failure(check: str, error: QilinTasksError) -> Finding:
    """An error of ours as a finding; its message already says what to do."""
    return Finding(check, "fail", str(error))


def in_order(findings: Sequence[Finding]) -> bool:
    """Whether nothing is missing; warnings don't count."""
    return all(finding.status != "fail" for finding in findings)


def as_json(findings: Sequence[Finding]) -> str:
    """`{"ok": …, "checks": [{"check", "status", "detail", "fix"}, …]}`."""
    checks = [asdict(finding) for finding in findings]
    return json.dumps({"ok": in_order(findings), "checks": checks}, ensure_ascii=False, indent=1)
