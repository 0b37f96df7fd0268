"""The options of `make build`, AUTH, START, SCALE, ROLLOUT, CONSOLE and PROTOCOLS: what SAM accepts only as literals.

`python -m infra.scripts.options` reads them and RUNTIME from the environment, and prints the template to
build: `template.yaml`, or a variant of it that is written beside it, since its paths are relative.
"""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from infra.scripts.auth_options import AUTHS, OPEN, use_auth
from infra.scripts.console_options import CONSOLES, FUNCTION, use_console
from infra.scripts.parameter_groups import group_parameters
from infra.scripts.protocol_options import ALL, read_protocols, use_protocols
from infra.scripts.published_versions import (
    Template,
    publish,
    publish_functions,
    publish_layers,
    resources_of,
    versioned_functions,
)
from infra.scripts.rollout_options import ROLLOUTS, use_rollout

ROOT = Path(__file__).resolve().parents[2]
VARIANT = ".template.json"
STARTS = {"plain": (3, 11), "snapstart": (3, 12)}
SCALES = {"ondemand": (3, 11), "managed": (3, 13)}
"""The values of each option, with the first version of Python that Lambda supports for it."""

MANAGED_MEMORY = 2048
"""Lambda Managed Instances have at least 2 GB, and a vCPU for every 2, 4 or 8 GB."""

MANAGED_PARAMETERS: Template = {
    "SubnetIds": {
        "Type": "List<AWS::EC2::Subnet::Id>",
        "Description": "Subnets of the instances. They must reach DynamoDB, S3, the models and the tools.",
    },
    "SecurityGroupIds": {
        "Type": "List<AWS::EC2::SecurityGroup::Id>",
        "Description": "Security groups of the instances.",
    },
    "MaxVCpuCount": {
        "Type": "Number",
        "Default": 12,
        "MinValue": 2,
        "Description": "Most vCPUs of all instances.",
    },
    "TurnsConcurrency": {
        "Type": "Number",
        "Default": 64,
        "MinValue": 1,
        "Description": "Most turns at once in one process of the function turns.",
    },
    "ResponsesConcurrency": {
        "Type": "Number",
        "Default": 64,
        "MinValue": 1,
        "Description": "Most responses at once in one process of the function responses.",
    },
    "KnowledgeConcurrency": {
        "Type": "Number",
        "Default": 16,
        "MinValue": 1,
        "Description": "Most requests at once in one process of the function knowledge.",
    },
    "OctoberConcurrency": {
        "Type": "Number",
        "Default": 16,
        "MinValue": 1,
        "Description": "Most requests at once in one process of the function october.",
    },
    "OpenAIAgentsConcurrency": {
        "Type": "Number",
        "Default": 64,
        "MinValue": 1,
        "Description": "Most requests and streams at once in one process of the function openai_agents.",
    },
    "ProtocolsConcurrency": {
        "Type": "Number",
        "Default": 64,
        "MinValue": 1,
        "Description": "Most requests and streams at once in one process of the function protocols.",
    },
}


class Refused(Exception):
    """The options cannot be combined. The message names them, and says what to choose."""


@dataclass(frozen=True)
class Options:
    """Validated options; `runtime` is empty for the template's default."""

    start: str = "plain"
    scale: str = "ondemand"
    runtime: str = ""
    auth: str = "authorizer"
    rollout: str = "all"
    console: str = "on"
    protocols: tuple[str, ...] = ALL

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> "Options":
        """Read the options of `make build`. Raises Refused."""
        start, scale = environment.get("START") or "plain", environment.get("SCALE") or "ondemand"
        auth, rollout = environment.get("AUTH") or "authorizer", environment.get("ROLLOUT") or "all"
        console = environment.get("CONSOLE") or "on"
        chosen = (
            ("AUTH", auth, AUTHS),
            ("START", start, STARTS),
            ("SCALE", scale, SCALES),
            ("ROLLOUT", rollout, ROLLOUTS),
            ("CONSOLE", console, CONSOLES),
        )
        for name, value, known in chosen:
            if value not in known:
                raise Refused(f"{name}={value} is not one of: {', '.join(known)}")
        if rollout == "canary" and scale == "managed":
            raise Refused("ROLLOUT=canary and SCALE=managed exclude each other: canaries are not verified on instances")
        if start == "snapstart" and scale == "managed":
            raise Refused("START=snapstart and SCALE=managed exclude each other: Managed Instances have no SnapStart")
        try:
            protocols = read_protocols(environment.get("PROTOCOLS", ""))
        except ValueError as error:
            raise Refused(str(error)) from None
        return cls(start, scale, environment.get("RUNTIME", ""), auth, rollout, console, protocols)

    @property
    def changes_template(self) -> bool:
        return self != Options(runtime=self.runtime)

    def apply(self, template: Template) -> None:
        """Change a parsed template. Raises Refused if it does not support the runtime."""
        runtime = template["Parameters"]["Runtime"]
        runtime["AllowedValues"] = [each for each in runtime["AllowedValues"] if version(each) >= self.oldest]
        self.check_runtime(self.runtime or runtime["Default"], runtime["AllowedValues"])
        use_console(template, self.console, self.auth)
        use_protocols(template, self.protocols)
        use_auth(template, self.auth)
        use_rollout(template, self.rollout)
        if self.start == "snapstart":
            use_snapstart(template)
        if self.scale == "managed":
            use_managed_instances(template)
        group_parameters(template)

    @property
    def oldest(self) -> tuple[int, ...]:
        return max(STARTS[self.start], SCALES[self.scale])

    def check_runtime(self, runtime: str, supported: Sequence[str]) -> None:
        if Options().oldest < self.oldest > version(runtime):
            chosen = "START=snapstart" if self.start == "snapstart" else "SCALE=managed"
            oldest = ".".join(map(str, self.oldest))
            raise Refused(f"{chosen} needs Python {oldest} or newer, not RUNTIME={runtime}: choose python{oldest}")
        if runtime not in supported:
            raise Refused(f"RUNTIME={runtime} is not one of: {', '.join(supported)}")


def version(runtime: str) -> tuple[int, ...]:
    """Return the version of a runtime such as `python3.13`, or () for another name."""
    parts = runtime.removeprefix("python").split(".")
    return tuple(map(int, parts)) if runtime.startswith("python") and all(map(str.isdecimal, parts)) else ()


def use_snapstart(template: Template) -> None:
    """Publish each function as a version with a snapshot, which its routes and event sources call by an alias.

    Old versions are deleted, because Lambda charges for each stored snapshot.
    """
    publish_functions(template)
    for function in versioned_functions(template).values():
        function["Properties"] |= {"SnapStart": {"ApplyOn": "PublishedVersions"}, "VersionDeletionPolicy": "Delete"}


def use_managed_instances(template: Template) -> None:
    """Run the streaming functions on instances, many invocations in each process. The others stay on demand.

    Their number of instances is limited by MaxVCpuCount, and not by reserved concurrency. The console stays on demand,
    because nothing runs for it while nobody looks at it.
    """
    template["Parameters"] |= {name: each for name, each in MANAGED_PARAMETERS.items() if is_used(name, template)}
    del template["Parameters"]["StreamMemorySize"], template["Rules"]["SmallRequestsInSmallMemory"]
    del template["Conditions"]["PackedInSmallMemory"]
    template["Resources"]["OperatorDashboard"]["Properties"]["Parameters"]["StreamMemorySize"] = "0"
    template["Resources"]["Capacity"] = {
        "Type": "AWS::Serverless::CapacityProvider",
        "Properties": {
            "VpcConfig": {"SubnetIds": {"Ref": "SubnetIds"}, "SecurityGroupIds": {"Ref": "SecurityGroupIds"}},
            "InstanceRequirements": {"Architectures": [{"Ref": "Architecture"}]},
            "ScalingConfig": {"MaxVCpuCount": {"Ref": "MaxVCpuCount"}},
        },
    }
    for name, function in streaming_functions(template).items():
        if name == FUNCTION:
            continue
        publish(function)
        del function["Properties"]["ReservedConcurrentExecutions"]
        del template["Parameters"][f"{name}ReservedConcurrency"], template["Conditions"][f"Reserves{name}"]
        function["Properties"] |= {
            "MemorySize": MANAGED_MEMORY,
            "CapacityProviderConfig": {
                "Arn": {"Fn::GetAtt": ["Capacity", "Arn"]},
                "PerExecutionEnvironmentMaxConcurrency": {"Ref": f"{name}Concurrency"},
            },
        }
    publish_layers(template)


def is_used(parameter: str, template: Template) -> bool:
    """Return whether the function exists whose concurrency a parameter is, if it is that of one."""
    function, found, _ = parameter.partition("Concurrency")
    return not found or function in template["Resources"]


def streaming_functions(template: Template) -> dict[str, Template]:
    """Return the functions on the streaming runtime, by name."""
    functions = resources_of(template, "AWS::Serverless::Function")
    return {
        name: function
        for name, function in functions.items()
        if "AWS_LAMBDA_EXEC_WRAPPER" in function["Properties"].get("Environment", {}).get("Variables", {})
    }


def choose_template(options: Options, root: Path = ROOT) -> Path:
    """Return the template to build, which is written if it is a variant. Raises Refused."""
    source = root / "template.yaml"
    if not options.changes_template and not options.runtime:
        return source
    from samtranslator.yaml_helper import yaml_parse  # noqa: PLC0415 - takes half a second; most builds do not need it

    template: Template = yaml_parse(source.read_text())
    options.apply(template)
    if not options.changes_template:
        return source
    variant = root / VARIANT
    variant.write_text(json.dumps(template, indent=1))
    return variant


def main(environment: Mapping[str, str], root: Path = ROOT) -> int:
    try:
        options = Options.of(environment)
        print(choose_template(options, root).relative_to(root))
        if options.auth == "none":
            print(f"stint: warning: {OPEN}", file=sys.stderr)
    except Refused as refused:
        print(f"stint: {refused}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(os.environ))
