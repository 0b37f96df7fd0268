"""`make deploy STACK=name`: deploy the output of `make build` with the SAM CLI.

The options are read from the environment, to which make exports the variables of its command line: STACK, PARAMETERS
and TAGS ("Name=value ...", quoted as in a shell), AUTH, RUNTIME and ARCHITECTURE. The region is AWS_REGION, or else
AWS_DEFAULT_REGION, or else that of the profile, as for `python -m stint.cli`.
"""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import yaml
from infra.scripts.auth_options import OPEN
from infra.scripts.build import Build, read_build
from infra.scripts.deployment_sizes import (
    ReadDeployed,
    Refused,
    read_deployed,
    refuse_large_environments,
    refuse_large_policies,
    refuse_long_parameters,
)

from stint.aws.environment import AwsEnvironment
from stint.aws.errors import AwsConfigurationError

ROOT = Path(__file__).absolute().parents[2]
USAGE = 'usage: make deploy STACK=name [PARAMETERS="Name=value ..."] [TAGS="name=value ..."]'
# The longest name of a function is `<stack>-openai_agents`, and Lambda allows 64 characters.
STACK = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,49}")
TARGET = ("Runtime", "Architecture")
# SAM removes the quotes around a value, and the escapes of quotes, twice: when it parses the file, and afterwards.
UNQUOTED = 2
_ESCAPED = re.compile(r"""\\(?=[ "'])""")


DEFAULT_TAGS = {"application": "stint"}
# Those that the SAM CLI takes without quotes. CloudFormation and SAM add tags of their own to the 50 of a resource.
TAG_NAME = re.compile(r"(?!aws:)[A-Za-z0-9_.:/+@-]{1,128}", re.IGNORECASE)
TAG_VALUE = re.compile(r"[A-Za-z0-9_.:/+@-]{1,256}")
MOST_TAGS = 40


def main(environment: Mapping[str, str], root: Path = ROOT, read_deployed: ReadDeployed = read_deployed) -> int:
    """Run `sam deploy` and return its status, or 2 if it was not started.

    `read_deployed` returns the parameters of the deployed stack in a region, which keeps those that are not named.
    """
    try:
        command = deploy_command(environment, root, read_deployed)
    except Refused as refused:
        print(f"stint: {refused}", file=sys.stderr)
        return 2
    print(shlex.join(command), flush=True)
    # SAM looks for samconfig.toml next to the built template, where there is none: every option is in the command.
    own = {name: value for name, value in environment.items() if name not in ("PYTHONPATH", "MAKEFLAGS")}
    return subprocess.run(command, cwd=root, env=own | {"SAM_CLI_TELEMETRY": "0"}, check=False).returncode


def deploy_command(environment: Mapping[str, str], root: Path, read_deployed: ReadDeployed) -> list[str]:
    """Return the command, and write the parameters to the file that it names. Raises Refused."""
    stack = environment.get("STACK", "")
    if not STACK.fullmatch(stack):
        problem = f"STACK={stack} is not a valid stack name: use a letter, then up to 49 letters, digits and dashes\n"
        raise Refused(f"{problem if stack else ''}{USAGE}")
    build = current_build(root)
    check_auth(environment.get("AUTH", ""), build)
    parameters = read_parameters(environment.get("PARAMETERS", ""), build)
    wanted = {"Runtime": environment.get("RUNTIME"), "Architecture": environment.get("ARCHITECTURE")}
    check_target({**wanted, **{name: parameters.pop(name) for name in TARGET if name in parameters}}, build)
    overrides = [f"Runtime={build.runtime}", f"Architecture={build.architecture}"]
    refuse_long_parameters(parameters)
    region = find_region(environment)
    deployed = read_deployed(stack, region)
    if deployed is None:
        parameters = {**of_new_stack(build), **parameters}
    known = {**(deployed or {}), **parameters}
    refuse_large_environments(build.template, stack, known)
    refuse_large_policies(build.template, stack, known)
    tags = read_tags(environment.get("TAGS", ""))
    if parameters:
        overrides.append(write_parameters(parameters, stack, root))
    sam = root / ".venv-sam" / "bin" / "sam"
    # `sam delete` deletes the uploads of its stack. Without a prefix, equal files of two stacks would be one object.
    options = ["--resolve-s3", "--s3-prefix", stack, "--no-confirm-changeset", "--no-fail-on-empty-changeset"]
    options += ["--capabilities", "CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND"]
    template = str((build.folder / "template.yaml").relative_to(root))
    named = ["--template-file", template, "--stack-name", stack, "--region", region]
    return [str(sam), "deploy", *named, *options, "--tags", *tags, "--parameter-overrides", *overrides]


def of_new_stack(build: Build) -> dict[str, str]:
    """Return the parameters of a stack that no earlier release has used. Their defaults are those of an update."""
    return {name: value for name, value in {"KeyLayout": "spread"}.items() if name in build.template["Parameters"]}


def find_region(environment: Mapping[str, str]) -> str:
    """Return the region that the operator's commands use, too. Raises Refused if there is none."""
    try:
        return AwsEnvironment(environment).region
    except AwsConfigurationError as error:
        raise Refused(f"{error} It is the region of the stack, such as eu-west-1.") from error


def current_build(root: Path) -> Build:
    build = read_build(root)
    if build is None:
        raise Refused("nothing is built: run `make build` first")
    if changed := build.changed_source():
        raise Refused(f"{changed} was changed after the build: run `make build` again")
    return build


def read_parameters(text: str, build: Build) -> dict[str, str]:
    """Parse "Name=value ..." like a shell. Raises Refused for a parameter that the template does not have."""
    known = build.template["Parameters"]
    parameters = {}
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise Refused(f"PARAMETERS cannot be read: {error}\n{USAGE}") from error
    for word in words:
        name, found, value = word.partition("=")
        if not found or name not in known:
            raise Refused(f"PARAMETERS: {word!r} is not a Name=value of the template. Parameters: {', '.join(known)}")
        parameters[name] = value
    return parameters


def read_tags(text: str) -> list[str]:
    """Return the tags of the stack, and of all its resources that have tags. Raises Refused."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise Refused(f"TAGS cannot be read: {error}\n{USAGE}") from error
    tags = dict(DEFAULT_TAGS)
    for word in words:
        name, found, value = word.partition("=")
        if not found or not TAG_NAME.fullmatch(name) or not TAG_VALUE.fullmatch(value):
            raise Refused(
                f"TAGS: {word!r} is not a name=value of a tag: up to 128 and 256 letters, digits and _.:/+-@. "
                "The name does not begin with aws:"
            )
        tags[name] = value
    if len(tags) > MOST_TAGS:
        raise Refused(f"TAGS: there are {len(tags)} tags, at most {MOST_TAGS} with those of AWS and of this project")
    return [f"{name}={value}" for name, value in tags.items()]


def check_auth(wanted: str, build: Build) -> None:
    """Raise Refused if the build has another option AUTH, and print a warning if everyone may call its API."""
    if wanted not in ("", build.auth):
        raise Refused(f"the build has AUTH={build.auth}, not AUTH={wanted}: run `make build AUTH={wanted}`")
    if build.auth == "none":
        print(f"stint: warning: {OPEN}", file=sys.stderr)


def check_target(wanted: Mapping[str, str | None], build: Build) -> None:
    """Raise Refused if the requested runtime or architecture is not that of the build."""
    built = {"Runtime": build.runtime, "Architecture": build.architecture}
    if any(wanted[name] not in (None, "", built[name]) for name in built):
        target = {name: wanted[name] or built[name] for name in built}
        raise Refused(
            f"the build is for {build}, not for {target['Runtime']} on {target['Architecture']}: "
            f"run `make build RUNTIME={target['Runtime']} ARCHITECTURE={target['Architecture']}`"
        )


def write_parameters(parameters: Mapping[str, str], stack: str, root: Path) -> str:
    """Write values to a file for SAM, whose command line does not support every value.

    Each stack has its own file, because several may be deployed at the same time.
    """
    file = root / ".aws-sam" / f"parameters-{stack}.yaml"
    quoted = dict(parameters)
    for _ in range(UNQUOTED):
        quoted = {name: f'"{_ESCAPED.sub(lambda found: found[0] * 2, value)}"' for name, value in quoted.items()}
    file.write_text(yaml.safe_dump(quoted))
    return f"file://{file}"


if __name__ == "__main__":
    sys.exit(main(os.environ))
