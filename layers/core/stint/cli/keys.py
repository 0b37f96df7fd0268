"""`keys create|list|revoke|rotate`: the API keys of a stack, of any tenant.

The command reads and writes the table of keys itself, with the AWS credentials of whoever runs it. So it needs no key,
and makes the first one of a stack. None of the limits of `KeyAdministration` hold here.

A secret is printed once, alone on the first line, so that a script can read it.
"""

import argparse
import sys
import time
from math import isfinite
from typing import TYPE_CHECKING

from stint.bootstrap.operator import OperatorComposition
from stint.cli.group import CommandError, add_command, check_tenant
from stint.cli.output import format_time, show_fields, show_json, show_table
from stint.domain.api_keys import ApiKeyObject, ApiKeyWithSecret, CreateApiKeyRequest, RotateApiKeyRequest
from stint.domain.expiry import DAY_SECONDS
from stint.domain.ids import TENANT
from stint.domain.paging import Page
from stint.domain.principals import SCOPES, format_limit

if TYPE_CHECKING:
    from stint.cli.group import Subparsers

SHOWN_ONCE = "Keep this key: it cannot be shown again."
REVOKED = (
    "API Gateway caches results of the authorizer, so a revoked key may work for up to 60 seconds more "
    "(the template's parameter AuthorizerCacheSeconds)."
)
MOST_KEYS = 1_000
"""Maximum keys that a command lists."""
HEAD = ("ID", "NAME", "SUBJECT", "SCOPES", "MODELS", "CREATED", "EXPIRES", "STATE")


def add_commands(groups: "Subparsers") -> None:
    """Add the group to the parser."""
    commands = groups.add_parser("keys", help="API keys").add_subparsers(metavar="COMMAND", required=True)
    add_create(commands)
    add_list(commands)
    add_revoke(commands)
    add_rotate(commands)


def add_create(commands: "Subparsers") -> None:
    command = add_command(commands, "create", "Create a key, and show it once.")
    command.add_argument("--tenant", default=TENANT, help="tenant whose data the key reaches (default: %(default)s)")
    command.add_argument("--name", default="", help="name for people")
    command.add_argument("--subject", default="", help="owner in logs and usage (default: the key's id)")
    command.add_argument("--scope", action="append", choices=SCOPES, help="right; repeatable (default: use)")
    command.add_argument("--model", action="append", help="pattern of models, such as openai/*; repeatable")
    command.add_argument("--requests-per-minute", type=int, help="limit of requests")
    command.add_argument("--tokens-per-minute", type=int, help="limit of tokens")
    command.add_argument("--dollars-per-month", type=float, help="limit of costs in a calendar month (UTC)")
    command.add_argument("--expires-in-days", type=float, help="lifetime (default: no end)")
    command.set_defaults(run=create)


def add_list(commands: "Subparsers") -> None:
    command = add_command(commands, "list", "List the keys of a tenant, or of all, without their secrets.")
    tenants = command.add_mutually_exclusive_group()
    tenants.add_argument("--tenant", default=TENANT, help="tenant (default: %(default)s)")
    tenants.add_argument("--all-tenants", action="store_true", help="keys of all tenants; reads the whole table")
    command.add_argument("--limit", type=int, default=MOST_KEYS, help="maximum keys (default: %(default)s)")
    command.add_argument("--after", metavar="ID", help="last key of the previous page")
    command.set_defaults(run=list_keys)


def add_revoke(commands: "Subparsers") -> None:
    command = add_command(commands, "revoke", "Make a key invalid for ever.")
    command.add_argument("id", help="the key's id, not the key")
    command.set_defaults(run=revoke)


def add_rotate(commands: "Subparsers") -> None:
    command = add_command(commands, "rotate", "Replace the secret of a key, and show the new key once.")
    command.add_argument("id", help="the key's id, not the key")
    command.add_argument(
        "--overlap-seconds", type=int, default=0, help="time that the previous secret stays valid (default: 0)"
    )
    command.set_defaults(run=rotate)


async def create(arguments: argparse.Namespace, composition: OperatorComposition) -> None:
    show_key(await composition.api_keys.create(read_request(arguments)), arguments)


async def list_keys(arguments: argparse.Namespace, composition: OperatorComposition) -> None:
    if not 1 <= arguments.limit <= MOST_KEYS:
        raise CommandError(f"--limit must be from 1 to {MOST_KEYS}.")
    if arguments.all_tenants:
        page = await composition.all_api_keys.read_page(arguments.after, arguments.limit)
    else:
        page = await composition.api_keys.list_page(check_tenant(arguments.tenant), arguments.after, arguments.limit)
    show_page(page, arguments)
    if page.has_more:
        # To standard error, so that a script reads keys only.
        print(f"More keys follow. Go on with --after {page.data[-1].id}", file=sys.stderr)


def show_page(page: Page[ApiKeyObject], arguments: argparse.Namespace) -> None:
    """Print a page of keys, with their tenants if there may be several."""
    if arguments.json:
        show_json(page.data)
    elif page.data and arguments.all_tenants:
        show_table(("TENANT", *HEAD), [(key.tenant, *row_of(key)) for key in page.data])
    elif page.data:
        show_table(HEAD, [row_of(key) for key in page.data])
    elif arguments.after:
        print("No keys follow.")
    elif arguments.all_tenants:
        print("There are no keys.")
    else:
        print(f"The tenant {arguments.tenant} has no keys. For those of all tenants, use --all-tenants.")


async def revoke(arguments: argparse.Namespace, composition: OperatorComposition) -> None:
    revoked = await composition.api_keys.revoke(None, arguments.id)
    if arguments.json:
        show_json(revoked)
        return
    print(f"Revoked {revoked.id} of the tenant {revoked.tenant}.\n{REVOKED}")


async def rotate(arguments: argparse.Namespace, composition: OperatorComposition) -> None:
    request = RotateApiKeyRequest(overlap_seconds=arguments.overlap_seconds)
    rotated = await composition.api_keys.rotate(None, arguments.id, request.overlap_seconds)
    show_key(rotated, arguments)
    if not (arguments.json or request.overlap_seconds):
        print(REVOKED.replace("a revoked key", "the previous secret"))


def read_request(arguments: argparse.Namespace) -> CreateApiKeyRequest:
    """Return the request of `create`. Raises ValidationError."""
    days = arguments.expires_in_days
    expires_at = None if days is None else time.time() + days * DAY_SECONDS
    budgets = ("requests_per_minute", "tokens_per_minute", "dollars_per_month")
    return CreateApiKeyRequest.model_validate(
        {
            "tenant": check_tenant(arguments.tenant),
            "name": arguments.name,
            "subject": arguments.subject,
            "scopes": arguments.scope,
            "models": arguments.model,
            "budgets": {name: getattr(arguments, name) for name in budgets},
            "expires_at": int(expires_at) if expires_at is not None and isfinite(expires_at) else expires_at,
        }
    )


def show_key(key: ApiKeyWithSecret, arguments: argparse.Namespace) -> None:
    """Print a key with its secret."""
    if arguments.json:
        show_json(key)
        return
    print(f"{key.key}\n{SHOWN_ONCE}")
    budgets = key.budgets.model_dump(exclude_none=True)
    show_fields(
        {
            "id": key.id,
            "tenant": key.tenant,
            "name": key.name,
            "subject": key.subject,
            "scopes": " ".join(key.scopes),
            "models": " ".join(key.models),
            "budgets": ", ".join(f"{name} {format_limit(value)}" for name, value in budgets.items()),
            "expires": format_time(key.expires_at),
        }
    )


def row_of(key: ApiKeyObject) -> tuple[str, ...]:
    """Return the texts of a key in the list."""
    return (
        key.id,
        key.name,
        key.subject,
        " ".join(key.scopes),
        " ".join(key.models) or "all",
        format_time(key.created_at),
        format_time(key.expires_at) or "never",
        state_of(key),
    )


def state_of(key: ApiKeyObject) -> str:
    if key.revoked_at is not None:
        return "revoked"
    return "expired" if key.expires_at is not None and key.expires_at <= time.time() else "active"
