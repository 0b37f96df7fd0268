"""The templates of an earlier build, from which a stack is updated.

`python -m tests.deploy.base_build` stores those of the current build. It is run for each release, so that the next one
is tested as an update of it. The code of functions and layers is not stored.
"""

import gzip
import json
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path

from infra.local.engine import ROOT
from infra.scripts.build import folder_of

FILE = Path(__file__).with_name("base_build.json.gz")
TEMPLATE = "template.yaml"


@dataclass(frozen=True)
class BaseBuild:
    """The templates of a build by their paths in it, and the commit that was built."""

    commit: str
    templates: dict[str, str]


def read_base_build() -> BaseBuild:
    return BaseBuild(**json.loads(gzip.decompress(FILE.read_bytes())))


def write_base_build(commit: str, folder: Path) -> None:
    """Store the templates of a build. The same build becomes the same bytes."""
    files = [folder / TEMPLATE, *sorted(folder.glob(f"*/{TEMPLATE}"))]
    templates = {str(file.relative_to(folder)): file.read_text() for file in files}
    FILE.write_bytes(gzip.compress(json.dumps(asdict(BaseBuild(commit, templates))).encode(), mtime=0))


if __name__ == "__main__":
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True)
    write_base_build(head.stdout.strip(), folder_of(ROOT))
