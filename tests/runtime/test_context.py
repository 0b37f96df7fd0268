import json

from stint_runtime.client import Invocation
from stint_runtime.context import LambdaContext


def context_of(client_context: object) -> LambdaContext:
    headers = {"lambda-runtime-client-context": json.dumps(client_context)} if client_context is not None else {}
    return LambdaContext(Invocation("r", b"{}", headers, 0), {}, None)


def test_the_client_context_is_as_in_the_managed_runtime() -> None:
    given = {"custom": {"key": {"a": 1}}, "env": {"locale": "de"}, "client": {"app_title": "t"}}

    context = context_of(given).client_context

    assert context is not None
    assert context.custom == {"key": {"a": 1}}
    assert context.env == {"locale": "de"}
    assert (context.client.app_title, context.client.installation_id) == ("t", None)


def test_what_a_client_context_does_not_hold_is_none() -> None:
    context = context_of({}).client_context

    assert context is not None
    assert (context.custom, context.env, context.client) == (None, None, None)
    assert context_of(None).client_context is None
