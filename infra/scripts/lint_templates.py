"""Check the translated template, its variants, its nested templates and those in docs with cfn-lint."""

import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from infra.local.engine import ROOT
from infra.local.translation import translate
from infra.scripts.options import Options, choose_template

EXAMPLES = (ROOT / "docs" / "examples" / "edge.yaml", ROOT / "docs" / "examples" / "key.yaml")
CFN_LINT = ROOT / ".venv-sam" / "bin" / "cfn-lint"
REGION = "us-east-1"


VARIANTS = (
    Options(),
    Options(auth="iam"),
    Options(auth="none"),
    Options(start="snapstart"),
    Options(scale="managed"),
    Options(rollout="canary"),
    Options(console="off", protocols=()),
)


def main() -> int:
    documents = [translate(choose_template(options), REGION) for options in VARIANTS]  # written to the same file
    codes = []
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        for done in threads.map(lint_document, [None, *documents]):
            print(done.stdout, end="")
            print(done.stderr, end="", file=sys.stderr)
            codes.append(done.returncode or int("not found" in done.stderr))  # a nested template
    return max(codes)


def lint(template: Path) -> "subprocess.CompletedProcess[str]":
    """Run cfn-lint on a SAM template's translation. Every finding is an error."""
    return lint_document(translate(template, REGION))


def lint_document(document: dict[str, Any] | None) -> "subprocess.CompletedProcess[str]":
    """Run cfn-lint on a translated template; None is `infra/aws/*.yaml` and the examples. Every finding is an error."""
    with tempfile.TemporaryDirectory() as folder:
        files = [*sorted(ROOT.glob("infra/aws/*.yaml")), *EXAMPLES]
        if document is not None:
            files = [Path(folder) / "translated.json"]
            files[0].write_text(json.dumps(document, indent=1))
            (Path(folder) / "infra").symlink_to(ROOT / "infra")  # nested templates
        command = [str(CFN_LINT), "--regions", REGION, "--template", *map(str, files)]
        return subprocess.run(command, capture_output=True, text=True, check=False)


if __name__ == "__main__":
    sys.exit(main())
