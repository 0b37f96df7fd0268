"""Vaults of OpenAI's Agents API: credentials for MCP servers, whose secrets are written and never read.

A credential has what anybody may see (`auth`), which is also what the table has of it in clear. Its secrets are in
requests only. They are printable ASCII of a length that can be redacted (SHORTEST) and encrypted (MAX_SECRET).
"""

import re
from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, AwareDatetime, BeforeValidator, Field, PlainSerializer

from stint.domain.fields import KnownTypes, Metadata, invalid
from stint.domain.limits import MAX_URL_LENGTH
from stint.domain.redaction import MASK, SHORTEST
from stint.domain.schema import Request, Schema

MAX_SECRET = 4_096
"""Maximum characters of a secret, which KMS encrypts by itself."""
MAX_NAME = 256
"""Maximum bytes of a name."""

PRINTABLE = re.compile(r"[\x21-\x7e]+")
"""The characters of tokens (RFC 6749, appendix A, without spaces)."""
SCOPES = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+(?: [\x21\x23-\x5b\x5d-\x7e]+)*")
"""The characters of scopes (RFC 6749, section 3.3)."""

NO_ENVIRONMENT = "the server has no environments: store the token of an MCP server as static_bearer or mcp_oauth"


def trim_name(name: str) -> str:
    """Return a name without the spaces around it. Raises PydanticCustomError."""
    trimmed = name.strip()
    if not 1 <= len(trimmed.encode(errors="surrogatepass")) <= MAX_NAME:
        raise invalid(f"The name must have 1 to {MAX_NAME} bytes of UTF-8 without the spaces around it.")
    return trimmed


def check_secret(secret: str) -> str:
    """Refuse a secret that cannot be sent, redacted or encrypted. Raises PydanticCustomError."""
    if not SHORTEST <= len(secret) <= MAX_SECRET or PRINTABLE.fullmatch(secret) is None:
        raise invalid(
            f"It must have {SHORTEST} to {MAX_SECRET:,} printable characters of ASCII, without spaces. Send a token "
            "without its scheme Bearer."
        )
    if MASK in secret:
        raise invalid(f"It contains {MASK}, which replaces secrets in objects. Send the whole secret.")
    return secret


def check_scope(scope: str) -> str:
    """Refuse malformed scopes. Raises PydanticCustomError."""
    if SCOPES.fullmatch(scope) is None:
        raise invalid("The scope must be names of printable characters, separated by single spaces.")
    return scope


def write_time(moment: datetime) -> str:
    """Return a time in UTC (RFC 3339)."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


VaultName = Annotated[str, Field(max_length=4 * MAX_NAME), AfterValidator(trim_name)]
Secret = Annotated[str, AfterValidator(check_secret)]
ServerUrl = Annotated[str, Field(min_length=1, max_length=MAX_URL_LENGTH)]
ClientId = Annotated[str, Field(min_length=1, max_length=1000)]
OAuthScope = Annotated[str, Field(min_length=1, max_length=4096), AfterValidator(check_scope)]
Moment = Annotated[AwareDatetime, PlainSerializer(write_time)]

VaultStatus = Literal["active", "archived"]
ClientAuthType = Literal["none", "client_secret_basic", "client_secret_post"]


class CreateVault(Request):
    name: VaultName | None = None
    metadata: Metadata = Field(default_factory=dict)


class UpdateVault(Request):
    """The changed fields of a vault: `model_fields_set` has their names. Null clears the name."""

    name: VaultName | None = None
    metadata: Metadata = Field(default_factory=dict)


class NoClientAuth(Request):
    """A public client, which sends its id alone."""

    type: Literal["none"]


class ClientSecret(Request):
    """A client with a secret, which it sends in a Basic login or in the form."""

    type: Literal["client_secret_basic", "client_secret_post"]
    client_secret: Secret


class NewRefresh(Request):
    """How an access token is renewed (RFC 6749, section 6). `resource` is that of RFC 8707."""

    client_id: ClientId
    refresh_token: Secret
    token_endpoint: ServerUrl
    token_endpoint_auth: Annotated[NoClientAuth | ClientSecret, Field(discriminator="type")]
    scope: OAuthScope | None = None
    resource: ServerUrl | None = None


class NewBearer(Request):
    """A token that does not change."""

    type: Literal["static_bearer"]
    token: Secret
    mcp_server_url: ServerUrl


class NewOAuth(Request):
    """An access token, with a refresh token perhaps."""

    type: Literal["mcp_oauth"]
    access_token: Secret
    mcp_server_url: ServerUrl
    expires_at: AwareDatetime | None = None
    refresh: NewRefresh | None = None


AUTH_TYPES = KnownTypes("credential", ("static_bearer", "mcp_oauth"), {"environment_variable": NO_ENVIRONMENT})
NewAuth = Annotated[Annotated[NewBearer | NewOAuth, Field(discriminator="type")], BeforeValidator(AUTH_TYPES)]


class CreateCredential(Request):
    name: VaultName
    auth: NewAuth
    metadata: Metadata = Field(default_factory=dict)


class RotatedClientSecret(Request):
    type: Literal["client_secret_basic", "client_secret_post"]
    client_secret: Secret | None = None


class RotatedRefresh(Request):
    """The changed fields. Null clears the scope, and keeps the others."""

    refresh_token: Secret | None = None
    scope: OAuthScope | None = None
    token_endpoint_auth: RotatedClientSecret | None = None


class RotatedBearer(Request):
    type: Literal["static_bearer"]
    token: Secret


class RotatedOAuth(Request):
    """The changed fields. A new access token without `expires_at` has no known end."""

    type: Literal["mcp_oauth"]
    access_token: Secret | None = None
    expires_at: AwareDatetime | None = None
    refresh: RotatedRefresh | None = None


RotatedAuth = Annotated[
    Annotated[RotatedBearer | RotatedOAuth, Field(discriminator="type")], BeforeValidator(AUTH_TYPES)
]


class UpdateCredential(Request):
    """The changed fields of a credential: `model_fields_set` has their names."""

    auth: RotatedAuth | None = None
    metadata: Metadata = Field(default_factory=dict)


class Vault(Schema):
    """A vault. `created_at` is in seconds since 1970."""

    id: str
    object: Literal["vault"] = "vault"
    created_at: int
    name: str | None = None
    metadata: dict[str, str] = Field(default_factory=dict)


class VaultDeleted(Schema):
    id: str
    object: Literal["vault.deleted"] = "vault.deleted"
    deleted: Literal[True] = True


class ClientAuth(Schema):
    """How the client logs in to the token endpoint, without its secret."""

    type: ClientAuthType


class TokenRefresh(Schema):
    """How an access token is renewed, without the secrets."""

    client_id: str
    token_endpoint: str
    token_endpoint_auth: ClientAuth
    scope: str | None = None
    resource: str | None = None


class BearerAuth(Schema):
    type: Literal["static_bearer"] = "static_bearer"
    mcp_server_url: str


class OAuthAuth(Schema):
    """`expires_at` is the end of the access token, if it is known."""

    type: Literal["mcp_oauth"] = "mcp_oauth"
    mcp_server_url: str
    expires_at: Moment | None = None
    refresh: TokenRefresh | None = None


class VaultCredential(Schema):
    """A credential without its secrets. Times are in seconds since 1970."""

    id: str
    object: Literal["vault.credential"] = "vault.credential"
    vault_id: str
    name: str
    auth: Annotated[BearerAuth | OAuthAuth, Field(discriminator="type")]
    metadata: dict[str, str] = Field(default_factory=dict)
    created_at: int
    updated_at: int

    @property
    def refresh(self) -> TokenRefresh | None:
        return self.auth.refresh if isinstance(self.auth, OAuthAuth) else None

    @property
    def expires_at(self) -> float | None:
        """Return the end of the access token in seconds since 1970, if it is known."""
        end = self.auth.expires_at if isinstance(self.auth, OAuthAuth) else None
        return None if end is None else end.timestamp()


class CredentialDeleted(Schema):
    id: str
    object: Literal["vault.credential.deleted"] = "vault.credential.deleted"
    deleted: Literal[True] = True


MAX_VAULTS_OF_SESSION = 16
"""Maximum vaults of a session. A turn reads each of them."""
