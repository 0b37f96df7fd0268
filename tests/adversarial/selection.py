"""The hostile cases that `make test-adversarial` runs: those of changed folders, and an eighth of the others.

Which eighth is chosen by the commit, so that eight commits run about all cases, and one commit the same ones each time.
`ADVERSARIAL=3` chooses an eighth, `BASE=commit` what files are compared with, and `ADVERSARIAL=all` runs everything, as
does pytest without the variable. Everything runs, too, if git cannot tell what has changed, or if what all cases share
has changed.
"""

import os
import zlib
from dataclasses import dataclass
from pathlib import PurePath

from tests.commit import base_commit, changed_files, commit_number

SHARES = 8
VARIABLE, ALL, SAMPLE = "ADVERSARIAL", "all", "sample"
OWN = "tests/adversarial/"
PRODUCT = "layers/core/stint/"
SHARED = ("requirements/dev.txt", "layers/dependencies/", OWN)
"""Beginnings of files that change the costs of every case, except for the files in COVERED."""

COVERED: dict[str, tuple[str, ...]] = {
    "answer_cases": ("loop/", "models/", "providers/"),
    "credential_cases": ("domain/", "loop/", "services/responses/", "spending/"),
    "document_cases": ("documents/", "net/", "services/turns/", "shields/"),
    "error_cases": ("apis/", "http/"),
    "form_cases": ("http/multipart", "http/routes/"),
    "json_cases": ("apis/", "domain/", "http/"),
    "masking_cases": ("services/registry/", "services/agents/", "tools/masking"),
    "mcp_cases": ("services/responses/", "tools/"),
    "request_cases": ("apis/", "net/", "services/"),
    "schema_cases": ("json_schema/", "regex/", "services/responses/"),
    "server_cases": ("net/", "providers/", "tools/"),
    "stored_cases": ("services/", "store/"),
    "test_hostile_files": ("documents/", "retrieval/"),
    "test_jinja_bounds": ("jinja/",),
    "test_meter": (),
    "test_redactor_bounds": ("domain/known_secrets", "domain/redaction"),
    "test_regexes": ("",),
    "test_schema_bounds": ("json_schema/", "regex/"),
    "test_small_function": ("bootstrap/", "documents/", "retrieval/", "settings", "store/"),
    "test_text_memory": ("regex/", "shields/"),
    "tool_answer_cases": ("loop/", "tools/"),
    "tool_cases": ("loop/", "shields/", "tools/"),
}
"""The code that the cases of a file attack: beginnings of paths below `layers/core/stint`. The empty one is all of it.

`event_cases` is not here: its cases are made by a function of `answer_cases`, so everything runs when it changes.
"""


@dataclass(frozen=True)
class Selection:
    """An eighth of the cases, and the files whose cases all run. Without an eighth, everything runs."""

    share: int | None
    files: frozenset[str] = frozenset()
    base: str = ""

    def has(self, file: str, name: str) -> bool:
        """Return whether a test runs. `file` is the name, without a suffix, of the file with the case."""
        return self.share is None or file in self.files or zlib.crc32(name.encode()) % SHARES == self.share

    def __str__(self) -> str:
        if self.share is None:
            return "everything"
        changed = f", and all of {', '.join(sorted(self.files))}, whose code has changed" if self.files else ""
        again = f"{VARIABLE}={self.share} {f'BASE={self.base[:12]} ' if self.base else ''}make test-adversarial"
        return (
            f"share {self.share} of {SHARES}{changed}\n"
            f"to repeat it: {again}; to run everything: make test-adversarial {VARIABLE}={ALL}"
        )


def choose() -> Selection:
    """Return what a run includes, by the variables of the environment and the commit."""
    chosen = os.environ.get(VARIABLE) or ALL
    if chosen == ALL:
        return Selection(None)
    base = base_commit()
    share = commit_number() % SHARES if chosen == SAMPLE else int(chosen)
    return select(share, changed_files(base), base or "")


def select(share: int, changed: set[str] | None, base: str) -> Selection:
    """Return an eighth with the files whose code has changed; everything if that is not known."""
    if not 0 <= share < SHARES:
        raise ValueError(f"{VARIABLE}={share} is none of the shares 0 to {SHARES - 1}. Set it to one, or to {ALL}.")
    if changed is None or any(path.startswith(SHARED) and not is_own(path) for path in changed):
        return Selection(None)
    files = {PurePath(path).stem for path in changed if is_own(path)}
    files |= {
        file
        for file, places in COVERED.items()
        if any(path.startswith(f"{PRODUCT}{place}") for path in changed for place in places)
    }
    return Selection(share, frozenset(files), base)


def is_own(path: str) -> bool:
    """Return whether a file has cases of its own."""
    return path.startswith(OWN) and PurePath(path).stem in COVERED
