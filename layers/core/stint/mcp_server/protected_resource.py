"""The metadata of this API as a protected resource (RFC 9728), by which a client finds the issuer of its tokens.

The resource is the audience that tokens of the issuer must have (STINT_OIDC_AUDIENCE). A client asks its issuer for a
token with this audience (RFC 8707), and sends it to no server with another one. So there is metadata only if the
audience is the URL of the MCP endpoint: that of anything else, a client would refuse.
"""

from urllib.parse import urlsplit

from stint.domain.errors import NotFound
from stint.mcp_server.schemas import ResourceDocument
from stint.settings import Settings

PATH = "/v1/mcp"
UNSET = "It exists if the stack has an OidcIssuer, and its OidcAudience is the URL of this MCP endpoint."
SCOPES = ("use", "users:act")
"""The scopes of the routes of MCP."""


def describe_resource(settings: Settings) -> ResourceDocument:
    """Return the metadata. Raises NotFound if tokens are not accepted, or not for the URL of the endpoint."""
    if not settings.oidc_issuer or not is_endpoint(settings.oidc_audience):
        error = NotFound("Protected resource", PATH)
        error.add(UNSET)
        raise error
    return ResourceDocument(
        resource=settings.oidc_audience,
        authorization_servers=[settings.oidc_issuer],
        scopes_supported=[settings.oidc_scope_prefix + scope for scope in SCOPES],
    )


def is_endpoint(audience: str) -> bool:
    """Return whether an audience is the URL of an MCP endpoint."""
    parts = urlsplit(audience)
    return parts.scheme in ("https", "http") and bool(parts.netloc) and parts.path.endswith(PATH)
