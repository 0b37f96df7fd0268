"""Principals of callers that sign their requests with IAM credentials (SigV4).

API Gateway verifies the signature and writes the caller's ARN into the request context, so nothing secret is checked
here. What remains is to decide whose principal a role is, by the table STINT_IAM_ROLES. Without a table nobody may
call: a role of the account that may invoke the API is not yet a user of it.

https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html
"""

import json
import logging
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from pydantic import ConfigDict, TypeAdapter, ValidationError

from stint.domain.errors import Forbidden, Unauthenticated
from stint.domain.ids import TenantName
from stint.domain.principals import NO_BUDGETS, Budgets, Principal, Scope
from stint.domain.schema import Schema
from stint.domain.validation import describe_faults

logger = logging.getLogger(__name__)

NO_ROLES = (
    "No role may call this API: STINT_IAM_ROLES is empty. Set the parameter IamRoles to the roles that may, as JSON; "
    "see docs/security.md."
)

ROLE_NAME = r"[A-Za-z0-9_+=,.@-]{1,64}"
PLAIN_NAME = re.compile(ROLE_NAME)
ASSUMED_ROLE = re.compile(
    rf"arn:aws(?:-[a-z]+)*:sts::(?P<account>[0-9]{{12}}):assumed-role/(?P<name>{ROLE_NAME})/[A-Za-z0-9_+=,.@-]+"
)
ROLE_ARN = re.compile(rf"arn:aws(?:-[a-z]+)*:iam::(?P<account>[0-9]{{12}}):role/(?:[!-.0-~]+/)*(?P<name>{ROLE_NAME})")


class IamRole(Schema):
    """A role that may call the API, and the principal that it is."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    tenant: TenantName
    subject: str = ""
    scopes: frozenset[Scope]
    models: tuple[str, ...] = ()
    budgets: Budgets = NO_BUDGETS


def authenticate_role(table: str, context: Mapping[str, Any]) -> Principal:
    """Return the principal of a request context by the roles of STINT_IAM_ROLES.

    A role's name stands for a role of the API's own account, an ARN for one of any account. The name of the session is
    the caller's choice, so it identifies nobody. The subject is the account and the name, such as `111122223333/app`.

    Raises:
        Unauthenticated: the request was not signed.
        Forbidden: the caller has no role, or one that is not in the table.
    """
    arn = (context.get("identity") or {}).get("userArn")
    if not isinstance(arn, str) or not arn:
        raise Unauthenticated("The request is not signed. Sign it with AWS Signature Version 4.")
    # The table has roles only, no users.
    assumed = ASSUMED_ROLE.fullmatch(arn)
    if assumed is None:
        raise Forbidden(f"{arn!r} may not call this API. Call it with a role of STINT_IAM_ROLES.", code="unknown_role")
    roles = read_iam_roles(table)
    if not roles:
        # The operator's fault rather than the caller's, so that it is found in the logs.
        logger.error("STINT_IAM_ROLES is empty, so nobody may call. Set the parameter IamRoles")
        raise Forbidden(NO_ROLES, code="unknown_role")
    account, name = assumed["account"], assumed["name"]
    role = roles.get((account, name))
    # A plain name in the table means a role of this account. Anybody can create a role of that name in another one.
    if role is None and account == context.get("accountId"):
        role = roles.get(("", name))
    if role is None:
        message = f"The role {name!r} of the account {account} may not call this API. Add it to STINT_IAM_ROLES."
        raise Forbidden(message, code="unknown_role")
    subject = role.subject or f"{account}/{name}"
    return Principal(role.tenant, subject, role.scopes, models=role.models, budgets=role.budgets)


@lru_cache(maxsize=8)
def read_iam_roles(table: str) -> Mapping[tuple[str, str], IamRole]:
    """Read STINT_IAM_ROLES. The keys of the result are accounts and names; the account of a plain name is empty.

    Raises:
        ValueError: it is malformed. The message says where.
    """
    try:
        roles = TypeAdapter(dict[str, IamRole]).validate_python(json.loads(table or "{}"))
    except ValidationError as error:
        raise ValueError(f"STINT_IAM_ROLES is malformed: {describe_faults(error)}") from None
    except ValueError:
        raise ValueError("STINT_IAM_ROLES is malformed: it is not JSON") from None
    return {split_role(name): role for name, role in roles.items()}


def split_role(name: str) -> tuple[str, str]:
    """Return the account and the name of a role's ARN. The account of a plain name is empty. Raises ValueError."""
    arn = ROLE_ARN.fullmatch(name)
    if arn is not None:
        return arn["account"], arn["name"]
    if PLAIN_NAME.fullmatch(name) is None:
        raise ValueError(f"STINT_IAM_ROLES is malformed: {name!r} is neither the name nor the ARN of a role")
    return "", name
