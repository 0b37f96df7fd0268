"""Check the translated template, its variants, its nested templates and the one in docs with cfn-lint."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from infra.local.engine import ROOT
from infra.local.translation import translate
from infra.scripts.options import Options, choose_template

EDGE = ROOT / "docs" / "examples" / "edge.yaml"
CFN_LINT = ROOT / ".venv-sam" / "bin" / "cfn-lint"
REGION = "us-east-1"


VARIANTS = (
    Options(),
    Options(auth="iam"),
    Options(auth="none"),
    Options(start="snapstart"),
    Options(scale="managed"),
    Options(rollout="canary"),
)


def main() -> int:
    codes = []
    for options in VARIANTS:
        done = lint(choose_template(options))
        print(done.stdout, end="")
        print(done.stderr, end="", file=sys.stderr)
        codes.append(done.returncode)
    return max(codes)


def lint(template: Path) -> "subprocess.CompletedProcess[str]":
    """Run cfn-lint on a SAM template's translation, on `infra/aws/*.yaml` and the edge. Every finding is an error."""
    with tempfile.TemporaryDirectory() as folder:
        translated = Path(folder) / "translated.json"
        translated.write_text(json.dumps(translate(template, REGION), indent=1))
        nested = Path(folder) / "infra"
        nested.symlink_to(ROOT / "infra")
        files = [translated, *sorted(nested.glob("aws/*.yaml")), EDGE]
        command = [str(CFN_LINT), "--regions", REGION, "--template", *map(str, files)]
        return subprocess.run(command, capture_output=True, text=True, check=False)


if __name__ == "__main__":
    sys.exit(main())
