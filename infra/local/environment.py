"""The environment of function processes: the template's, and what the user's shell lays over it."""

from collections.abc import Mapping
from typing import Any

from infra.local.system import parameter_behind

OFFLINE_MODEL = "scripted/demo"
OPENAI_MODEL = "openai/gpt-4.1-mini"
# Tools and documents of this machine, which its owner may reach anyway.
LOOPBACK = "127.0.0.0/8,::1/128"
# Of the shell's variables these reach the functions; everything else stays outside, as in Lambda.
_PREFIXES = ("STINT_", "STREAM_", "OPENAI_", "TAVILY_", "BRAVE_", "WOLFRAM_", "POWERTOOLS_", "AWS_")
_NAMES = ("HOME", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE")
_REGION = ("AWS_REGION", "AWS_DEFAULT_REGION")
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


def shell_settings(shell: Mapping[str, str]) -> dict[str, str]:
    """What the shell sets for the functions; else loopback is no closed network, and the model one that can be reached:
    the scripted one without key or URL."""
    settings = {
        name: value
        for name, value in shell.items()
        if name.startswith(_PREFIXES) or name in _NAMES or name.upper() in _PROXIES
    }
    reachable = shell.get("OPENAI_API_KEY") or shell.get("OPENAI_BASE_URL")
    settings.setdefault("STINT_DEFAULT_MODEL", OPENAI_MODEL if reachable else OFFLINE_MODEL)
    settings.setdefault("STINT_ALLOWED_HOSTS", LOOPBACK)
    return settings


def parameter_overrides(translated: dict[str, Any], settings: Mapping[str, str]) -> dict[str, str]:
    """The template parameters that the shell sets through the environment variable that each of them feeds."""
    behind = {name: parameter_behind(translated, name) for name in settings}
    return {parameter: settings[name] for name, parameter in behind.items() if parameter}


def service_environment(
    engine: Mapping[str, str], lambda_url: str, settings: Mapping[str, str], *, signs: bool
) -> dict[str, str]:
    """Where functions find AWS: the engine and the local Lambda service, unless the shell names another endpoint.

    The engine's credentials mean nothing. When the shell `signs` with real ones, which Bedrock needs, they give way.
    """
    services = {**engine, "AWS_ENDPOINT_URL_LAMBDA": lambda_url}
    if "AWS_ENDPOINT_URL" in settings:
        services = {name: value for name, value in services.items() if name not in engine or "ENDPOINT" not in name}
    if signs:
        del services["AWS_ACCESS_KEY_ID"], services["AWS_SECRET_ACCESS_KEY"]
    direct = [settings[name] for name in ("NO_PROXY", "no_proxy") if settings.get(name)]
    no_proxy = ",".join([*direct[:1], "127.0.0.1", "localhost"])
    # The engine keeps data by region, so that of the engine is everybody's.
    always = {"NO_PROXY": no_proxy, "no_proxy": no_proxy} | {name: engine[name] for name in _REGION}
    return {"AWS_EC2_METADATA_DISABLED": "true", **services, **settings, **always}


def has_credentials() -> bool:
    """Whether this shell can sign requests to AWS; the metadata service of a machine in EC2 is not asked."""
    return _session().get_credentials() is not None


def shell_region(shell: Mapping[str, str]) -> str:
    """The region of the shell or of its AWS profile."""
    return shell.get("AWS_REGION") or _session().get_config_variable("region") or "us-east-1"


def _session() -> Any:
    import botocore.session  # noqa: PLC0415 - a quarter of a second, in parallel with the engine's start

    session = botocore.session.Session()
    session.set_config_variable("metadata_service_num_attempts", 0)
    return session
