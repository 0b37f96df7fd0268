"""`make sam-local`: a copy of the built template for `sam local invoke`, with the data of the running `make run`.

SAM CLI gives a function only variables that its template declares, and knows no outputs of nested stacks. So the
copy declares where AWS is, and names the table, the bucket and the queue; its defaults are the target that was
built for.
"""

import sys
from collections.abc import Mapping
from pathlib import Path

import yaml
from infra.local.engine import ROOT
from infra.local.environment import OFFLINE_MODEL
from infra.local.errors import LocalCloudError
from infra.local.samples import store_samples
from infra.local.state import State

BUILT = ROOT / ".aws-sam" / "build" / "template.yaml"
LOCAL = BUILT.with_name("local.yaml")


def main() -> int:
    try:
        environment = running_environment(Path(sys.argv[1]))
        store_samples(environment)
        write_template(environment)
    except LocalCloudError as error:
        print(f"stint: {error}", file=sys.stderr)
        return 1
    event = "--event events/turns/create_turn.json --docker-network host"
    print(f"Wrote {LOCAL}. Next:\n  sam local invoke Turns --template {LOCAL.relative_to(ROOT)} {event}")
    return 0


def running_environment(state: Path) -> dict[str, str]:
    """The variables that lead a function to the data of the running cloud."""
    engine = State(state).published_engine()
    if engine is None:
        raise LocalCloudError("nothing runs: start `make run` in another terminal, its data is what functions will use")
    outputs = {"STINT_TABLE": "TableName", "STINT_BUCKET": "BucketName", "STINT_QUEUE_URL": "WorkQueueUrl"}
    data = {name: engine.outputs[output] for name, output in outputs.items()}
    return engine.environment() | data | {"STINT_DEFAULT_MODEL": OFFLINE_MODEL, "STINT_SCRIPTED_MODELS": "true"}


def write_template(environment: Mapping[str, str]) -> None:
    """Write the built template with these variables for every function, and for the target it was built for."""
    if not BUILT.is_file():
        raise LocalCloudError(f"{BUILT} is missing: run `make build` with this machine's RUNTIME and ARCHITECTURE")
    template = yaml.safe_load(BUILT.read_text())
    template["Globals"]["Function"]["Environment"]["Variables"].update(environment)
    built_for = template["Resources"]["CoreLayer"]["Metadata"]
    template["Parameters"]["Runtime"]["Default"] = built_for["BuildMethod"]
    template["Parameters"]["Architecture"]["Default"] = built_for["BuildArchitecture"]
    LOCAL.write_text(yaml.safe_dump(template, sort_keys=False))


if __name__ == "__main__":
    sys.exit(main())
