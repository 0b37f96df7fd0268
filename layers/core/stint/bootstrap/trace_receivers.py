"""Composition of the sender of traces, for stacks that send them."""

from stint.http1.client import HttpTimeouts
from stint.providers.api_key import ApiKey
from stint.providers.openai.server import make_client
from stint.providers.otlp import OtlpReceiver
from stint.services.traces.trace_form import make_sent_form
from stint.services.traces.trace_sender import TraceReceiver, TraceSender
from stint.settings import Settings

HEADERS = "OTEL_EXPORTER_OTLP_HEADERS"


def make_trace_sender(settings: Settings) -> TraceSender:
    """Return the sender to all receivers of the settings."""
    receivers: list[TraceReceiver] = []
    if settings.traces_url:
        receivers.append(make_otlp_receiver(settings))
    if settings.traces == "xray":
        receivers.append(make_xray_receiver())
    form = make_sent_form(settings.service_name, content=settings.traces_content)
    return TraceSender(receivers, form, settings.otlp_timeout / 1000)


def make_otlp_receiver(settings: Settings) -> OtlpReceiver:
    seconds = settings.otlp_timeout / 1000
    key = ApiKey(
        settings.otlp_headers.get_secret_value(),
        settings.traces_secret_arn,
        name=HEADERS,
        setting="the parameter TracesSecretArn",
    )
    client = make_client(HttpTimeouts(connect=seconds, silence=seconds))
    return OtlpReceiver(settings.traces_url, key.read, client)


def make_xray_receiver() -> TraceReceiver:
    from stint.aws.credentials import RefreshedCredentials  # noqa: PLC0415 - only with Traces xray
    from stint.aws.credentials_chain import choose_provider  # noqa: PLC0415
    from stint.aws.environment import read_environment  # noqa: PLC0415
    from stint.aws.xray import XRayReceiver  # noqa: PLC0415

    environment = read_environment()
    return XRayReceiver(environment, RefreshedCredentials(choose_provider(environment)))
