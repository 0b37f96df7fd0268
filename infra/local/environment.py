"""The environment of function processes: the template's variables, overridden by those of the user's shell.

Where a variable comes from, the first that has it:

    always            the region of the engine, the proxies' exceptions, the refused ports: nothing works with others
    the shell         settings of the product, of AWS and of OpenTelemetry, by their prefixes; nothing else of the shell
    services          the endpoints of the engine and of the local Lambda service
    the template      what the function has when it is deployed

A setting that is a parameter of the template is also passed to the template, so that whatever else depends on the
parameter changes, too. A function gets no setting that the template declares for other functions only.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from infra.local.errors import LocalCloudError
from infra.local.server import PORTS
from infra.local.system import parameter_behind

from stint.settings import is_reference

OFFLINE_MODEL = "scripted/demo"
OFFLINE_EMBEDDING_MODEL = "hashed/words-384"
OFFLINE_IMAGE_MODEL = "scripted/drawing"
OPENAI_MODEL = "openai/gpt-4.1-mini"
REGION = "us-east-1"
"""Region of the local cloud. The engine separates data by region, so this must not depend on the shell."""
# Tools and documents on this machine are allowed: its owner can reach them anyway.
LOOPBACK = "127.0.0.0/8,::1/128"
# Only these variables of the shell are passed to the functions. In Lambda, none of the shell's variables are.
SETTINGS = ("STINT_", "STREAM_", "OPENAI_", "TAVILY_", "BRAVE_", "WOLFRAM_", "POWERTOOLS_")
_PREFIXES = (*SETTINGS, "AWS_", "OTEL_")
_STORES = ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_DYNAMODB", "AWS_ENDPOINT_URL_S3")
_NAMES = ("HOME", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE")
_REGION = ("AWS_REGION", "AWS_DEFAULT_REGION")
_MODELS = ("STINT_DEFAULT_MODEL", "STINT_EMBEDDING_MODEL", "STINT_IMAGE_MODEL")
_PROVIDERS = ("openai", "bedrock", "scripted")
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


def shell_settings(shell: Mapping[str, str], *, authorize: bool = False) -> dict[str, str]:
    """Return the shell's settings for the functions, with defaults.

    STINT_AUTH is that of the cloud: with another one, a function would trust what nobody checks, or refuse everyone.
    Code of models runs in namespaces, because this machine has other files.
    By default, functions may call loopback addresses, and the model is the scripted one if the shell has neither a key
    nor a URL of OpenAI.

    Raises:
        LocalCloudError: no provider serves the default model, or a setting is invalid.
    """
    settings = {
        name: value
        for name, value in shell.items()
        if name.startswith(_PREFIXES) or name in _NAMES or name.upper() in _PROXIES
    }
    if not settings.get("STINT_DEFAULT_MODEL"):
        settings["STINT_DEFAULT_MODEL"] = OPENAI_MODEL if openai_variable(shell) else OFFLINE_MODEL
    settings.setdefault("STINT_SCRIPTED_MODELS", "true")
    settings.setdefault("STINT_KEY_LAYOUT", "spread")  # no function of an earlier release runs beside these
    settings["SANDBOX_NAMESPACES"] = "1"
    settings["STINT_AUTH"] = "authorizer" if authorize else "none"
    settings.setdefault("STINT_EMBEDDING_MODEL", OFFLINE_EMBEDDING_MODEL)
    if settings["STINT_SCRIPTED_MODELS"] == "true":
        settings.setdefault("STINT_IMAGE_MODEL", OFFLINE_IMAGE_MODEL)
    settings.setdefault("STINT_VECTOR_INDEX", "packed")
    settings.setdefault("STINT_ALLOWED_HOSTS", LOOPBACK)
    providers = settings.get("STINT_PROVIDERS", "")
    if not is_reference(providers):  # the functions read the object
        refuse_unserved(settings["STINT_DEFAULT_MODEL"], named_providers(providers))
    refuse_invalid(settings)
    return settings


def find_misspelled(shell: Mapping[str, str]) -> list[str]:
    """Return a warning for each variable of the shell that misspells the name of a setting, and so has no effect."""
    from stint.domain.misspellings import find_intended  # noqa: PLC0415 - `make run` starts faster
    from stint.settings import Settings, variable_of  # noqa: PLC0415 - as above

    known = {variable_of(name).lower() for name in Settings.model_fields}
    # A named model server may have its key in any variable.
    unknown = [each for each in shell if each.lower() not in known and each not in shell.get("STINT_PROVIDERS", "")]
    meant = {each: find_intended(each.lower(), known) for each in unknown if each.startswith(SETTINGS)}
    return [f"Warning: {name} has no effect. Did you mean {each.upper()}?" for name, each in meant.items() if each]


def refuse_invalid(settings: Mapping[str, str]) -> None:
    """Refuse settings with which no function would start."""
    from stint.settings import SettingsError, read_settings  # noqa: PLC0415 - `make run` starts faster

    refuse_invalid_url(settings.get("OPENAI_BASE_URL", ""))
    try:
        read = read_settings(settings)
        if read.providers and not is_reference(read.providers):
            from stint.bootstrap.model_servers import read_model_servers  # noqa: PLC0415 - few have named servers

            read_model_servers(read)
    except (SettingsError, ValueError) as error:
        raise LocalCloudError(str(error)) from None


def refuse_invalid_url(url: str) -> None:
    """Refuse an address of the model server that no start of a server would make right."""
    from stint.http1.urls import InvalidURL, parse_url  # noqa: PLC0415 - `make run` starts faster

    try:
        parse_url(url.strip() or "http://localhost")
    except InvalidURL as error:
        raise LocalCloudError(
            f"OPENAI_BASE_URL is not a valid URL: {error}. Write for example http://127.0.0.1:11434/v1."
        ) from None


def named_providers(text: str) -> list[str]:
    """Return the ids in STINT_PROVIDERS, none if it is malformed."""
    try:
        return [str(server["id"]) for server in json.loads(text or "[]")]
    except (KeyError, TypeError, ValueError):
        return []


def refuse_unserved(model: str, named: Sequence[str] = ()) -> None:
    provider, _, name = model.partition("/")
    if provider not in (*_PROVIDERS, *named) or not name:
        raise LocalCloudError(
            f"STINT_DEFAULT_MODEL is {model!r}, which no provider serves: "
            f"add a prefix to the model's name: {', '.join(f'{each}/' for each in _PROVIDERS)}."
        )


def openai_variable(shell: Mapping[str, str]) -> str | None:
    """Return the variable that makes an `openai/` model the default, if one is set."""
    return next((name for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY") if shell.get(name)), None)


def model_note(shell: Mapping[str, str]) -> str:
    """Return a note about the default model: that it is scripted, or which variable selected it."""
    chosen, variable = shell.get("STINT_DEFAULT_MODEL", ""), openai_variable(shell)
    if chosen.startswith("scripted/") and variable:
        return f" (not a language model; STINT_DEFAULT_MODEL selects it, although {variable} is set)"
    if chosen.startswith("scripted/") or not (chosen or variable):
        return " (not a language model; set OPENAI_API_KEY or OPENAI_BASE_URL for a real one)"
    return "" if chosen else f" (because {variable} is set; STINT_DEFAULT_MODEL selects another)"


def parameter_overrides(translated: dict[str, Any], settings: Mapping[str, str]) -> dict[str, str]:
    """Return values of the template parameters whose environment variables the shell sets."""
    behind = {name: parameter_behind(translated, name) for name in settings}
    return {parameter: settings[name] for name, parameter in behind.items() if parameter}


def service_environment(
    engine: Mapping[str, str], lambda_url: str, settings: Mapping[str, str], *, signs: bool
) -> dict[str, str]:
    """Return the variables that point functions to the engine and the local Lambda service.

    Endpoints that the shell sets take precedence. The engine's credentials are placeholders. They are left out if the
    shell `signs` with real ones, which Bedrock needs.
    """
    services = {**engine, "AWS_ENDPOINT_URL_LAMBDA": lambda_url}
    if "AWS_ENDPOINT_URL" in settings:
        services = {name: value for name, value in services.items() if name not in engine or "ENDPOINT" not in name}
    if signs:
        del services["AWS_ACCESS_KEY_ID"], services["AWS_SECRET_ACCESS_KEY"]
    no_proxy = proxy_exceptions(settings)
    # The engine separates data by region, so every client uses that of the engine.
    always = {"NO_PROXY": no_proxy, "no_proxy": no_proxy} | {name: engine[name] for name in _REGION}
    always["STINT_CONSOLE_LOCAL"] = "true"
    always["STINT_REFUSED_PORTS"] = f"{PORTS[0]}-{PORTS[-1]}"
    return {"AWS_EC2_METADATA_DISABLED": "true", **services, **settings, **always}


def proxy_exceptions(settings: Mapping[str, str]) -> str:
    """Return NO_PROXY of the functions: that of the shell, and this machine."""
    direct = [settings[name] for name in ("NO_PROXY", "no_proxy") if settings.get(name)]
    return ",".join([*direct[:1], "127.0.0.1", "localhost"])


def has_credentials() -> bool:
    """Return whether this shell can sign requests to AWS, without a request to the metadata service of EC2."""
    return _session().get_credentials() is not None


def warn_of_bedrock(settings: Mapping[str, str]) -> list[str]:
    """Return a warning if a default model is one of Bedrock, for a shell without credentials."""
    chosen = [name for name in _MODELS if settings.get(name, "").startswith("bedrock/")]
    if not chosen:
        return []
    told = f"bedrock/ models need AWS credentials, and this shell has none ({', '.join(chosen)} names one)"
    advice = "Set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
    return [f"Warning: {told}.\n  {advice}. Until then, bedrock/ models fail, and others work."]


def local_region(shell: Mapping[str, str]) -> str:
    """Return the region of the local cloud: that of the shell only if the shell sets an endpoint of the stores."""
    return shell_region(shell) if any(shell.get(name) for name in _STORES) else REGION


def shell_region(shell: Mapping[str, str]) -> str:
    """Return the region of the shell or of its AWS profile. Bedrock's models are called in this region."""
    return shell.get("AWS_REGION") or _session().get_config_variable("region") or REGION


def check_profile(shell: Mapping[str, str]) -> None:
    """Raise LocalCloudError if the shell names an AWS profile that does not exist: every AWS client would fail."""
    if shell.get("AWS_PROFILE"):
        from botocore.exceptions import ProfileNotFound  # noqa: PLC0415 - only with a profile

        try:
            _session().get_scoped_config()
        except ProfileNotFound:
            raise LocalCloudError(
                f"AWS_PROFILE is {shell['AWS_PROFILE']!r}, but your AWS configuration has no such profile. "
                "Unset it, or set another one."
            ) from None


def _session() -> Any:
    import botocore.session  # noqa: PLC0415 - takes a quarter of a second, in parallel with the engine's start

    session = botocore.session.Session()
    session.set_config_variable("metadata_service_num_attempts", 0)
    return session
