"""`make sam-local`: write a copy of the built template for `sam local invoke` that uses the data of `make run`.

SAM CLI passes only those variables to a function that its template declares, and does not resolve outputs of nested
stacks. So the copy declares the AWS endpoints, and the names of the table, the bucket and the queue. Its default
parameters are those of the build.
"""

import asyncio
import sys
from collections.abc import Mapping
from pathlib import Path

import yaml
from infra.local.engine import ROOT
from infra.local.environment import OFFLINE_EMBEDDING_MODEL, OFFLINE_MODEL
from infra.local.errors import LocalCloudError
from infra.local.samples import store_samples
from infra.local.state import State
from infra.scripts.published_versions import resources_of

BUILT = ROOT / ".aws-sam" / "build" / "template.yaml"
LOCAL = BUILT.with_name("local.yaml")


def main() -> int:
    try:
        environment = running_environment(Path(sys.argv[1]))
        asyncio.run(store_samples(environment))
        write_template(environment)
    except LocalCloudError as error:
        print(f"stint: {error}", file=sys.stderr)
        return 1
    event = "--event events/turns/create_turn.json --docker-network host"
    print(f"Wrote {LOCAL}. Next:\n  sam local invoke Turns --template {LOCAL.relative_to(ROOT)} {event}")
    return 0


def running_environment(state: Path) -> dict[str, str]:
    """Return the variables that point a function to the data of the running cloud."""
    engine = State(state).published_engine()
    if engine is None:
        raise LocalCloudError("nothing runs: start `make run` in another terminal; functions will use its data")
    models = {"STINT_DEFAULT_MODEL": OFFLINE_MODEL, "STINT_EMBEDDING_MODEL": OFFLINE_EMBEDDING_MODEL}
    return engine.variables() | models | {"STINT_SCRIPTED_MODELS": "true", "STINT_KEY_LAYOUT": "spread"}


def write_template(environment: Mapping[str, str]) -> None:
    """Write the built template with the parameters of the build, and with these variables for every function.

    Of the settings, a function gets those that it declares.
    """
    if not BUILT.is_file():
        raise LocalCloudError(f"{BUILT} is missing: run `make build` with this machine's RUNTIME and ARCHITECTURE")
    template = yaml.safe_load(BUILT.read_text())
    for function in resources_of(template, "AWS::Serverless::Function").values():
        variables = function["Properties"].setdefault("Environment", {}).setdefault("Variables", {})
        variables |= {name: environment[name] for name in environment if name in variables or name.startswith("AWS_")}
    built_for = template["Resources"]["CoreLayer"]["Metadata"]
    template["Parameters"]["Runtime"]["Default"] = built_for["BuildMethod"]
    template["Parameters"]["Architecture"]["Default"] = built_for["BuildArchitecture"]
    LOCAL.write_text(yaml.safe_dump(template, sort_keys=False))


if __name__ == "__main__":
    sys.exit(main())
