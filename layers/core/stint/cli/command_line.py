"""The command line: options that all commands have, and the groups of commands.

A command works on the tables itself, with the operator's AWS credentials, not through the API. So its errors are those
of AWS: `explain` says what the operator can do about them, where the API says no more than "try again".
"""

import argparse
import asyncio
import json
import sys
from collections.abc import MutableMapping, Sequence
from pathlib import Path

from pydantic import ValidationError

from stint.aws.credentials import CredentialsError
from stint.aws.environment import read_environment
from stint.aws.errors import AwsConfigurationError, NoResponse, ServiceError
from stint.bootstrap.operator import OperatorComposition
from stint.cli import imports, keys, registry, runs, stop, users
from stint.cli.group import KEY_VARIABLE, CommandError
from stint.cli.stacks import read_stack
from stint.domain.errors import StintError
from stint.domain.validation import describe_faults
from stint.settings import SettingsError, read_settings

GROUPS = (imports, keys, registry, runs, stop, users)
"""The modules of the groups of commands. Each has `add_commands`, which sets `run` of each command."""

NO_TABLE = (
    "No table is named. Use --stack with the name of a deployed stack, or --table with its output KeysTableName, and "
    "AWS credentials that may write it; or --state with the folder of a running `make run`, such as .stint."
)
NAMED_TABLES = (
    "Use --table with the stack's output KeysTableName, or --data-table with TableName, and the region of the stack as "
    "AWS_REGION."
)
UNKNOWN_CREDENTIALS = ("UnrecognizedClientException", "InvalidSignatureException", "ExpiredTokenException")
Environment = MutableMapping[str, str]


def run(arguments: Sequence[str], environment: Environment) -> int:
    """Run a command, and return its exit code. AWS clients read this environment, which `--state` changes."""
    parsed = make_parser().parse_args(arguments)
    parsed.api_key = environment.get(KEY_VARIABLE, "")
    try:
        needs_table = getattr(parsed, "needs_table", True)
        if needs_table:
            select_stack(parsed, environment)
        composition = OperatorComposition(lambda: read_settings(environment))
        if needs_table and getattr(parsed, "needs_keys_table", True) and not composition.settings.keys_table:
            raise CommandError(NO_TABLE)
        asyncio.run(parsed.run(parsed, composition))
    except ValidationError as error:
        return fail(describe_faults(error))
    except StintError as error:
        return fail(explain(error))
    except (CommandError, SettingsError, CredentialsError, AwsConfigurationError) as error:
        return fail(str(error))
    return 0


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m stint.cli", description="Operate a stack of Stint.")
    groups = parser.add_subparsers(metavar="GROUP", required=True)
    for group in GROUPS:
        group.add_commands(groups)
    return parser


def select_stack(parsed: argparse.Namespace, environment: Environment) -> None:
    """Set the variables that name the stack. Raises CommandError, and AwsConfigurationError."""
    if parsed.stack:
        environment.update(read_stack(parsed.stack, environment))
    if parsed.table:
        environment["STINT_KEYS_TABLE"] = parsed.table
    if getattr(parsed, "data_table", None):  # an option of some groups
        environment["STINT_TABLE"] = parsed.data_table
    if getattr(parsed, "bucket", None):
        environment["STINT_BUCKET"] = parsed.bucket
    if getattr(parsed, "settings", None):
        environment.update(read_variables(parsed.settings))
    if parsed.state:
        # Last, so that a folder names all of its stack, whatever the shell has.
        environment.update(local_environment(parsed.state))


def local_environment(state: Path) -> dict[str, str]:
    """Return the variables that `make run` wrote into its state folder. Raises CommandError."""
    try:
        variables = json.loads((state / "lock").read_text())["environment"]
    except (OSError, ValueError, KeyError):
        raise CommandError(
            f"Nothing runs with the state folder {state}. Start `make run` in another terminal."
        ) from None
    return {str(name): str(value) for name, value in variables.items()}


def read_variables(file: Path) -> dict[str, str]:
    """Return the variables of a function, without those of AWS, from a file. Raises CommandError."""
    try:
        variables = json.loads(file.read_text())
    except (OSError, ValueError) as error:
        raise CommandError(f"{file} cannot be read as JSON: {error}") from None
    if not isinstance(variables, dict):
        raise CommandError(f"{file} has no JSON object of variables.")
    return {str(name): str(value) for name, value in variables.items() if str(name).startswith("STINT_")}


def explain(error: StintError) -> str:
    """Return what went wrong with a call of AWS, and what the operator can do; else the error's own message."""
    cause = error.__cause__
    while isinstance(cause, NoResponse) and isinstance(cause.__cause__, NoResponse | CredentialsError):
        cause = cause.__cause__
    match cause:
        case CredentialsError():
            return str(cause)
        case NoResponse():
            return f"{error} The region is {read_environment().region}: is it that of the stack? ({cause})"
        case ServiceError(code=code) if code in UNKNOWN_CREDENTIALS:
            return f"AWS does not accept the credentials ({code}). Check them with `aws sts get-caller-identity`."
        case ServiceError(code="ResourceNotFoundException"):
            return f"There is no such table in the region {read_environment().region}. {NAMED_TABLES}"
        case ServiceError(code="AccessDeniedException"):
            return "The AWS credentials may not use the table. Use those of an operator of the stack."
    return str(error)


def fail(message: str) -> int:
    """Print an error, without what a terminal would obey: AWS and files have written a part of it."""
    shown = "".join(each if each.isprintable() or each == "\n" else "?" for each in message)
    print(f"stint: {shown}", file=sys.stderr)
    return 1
