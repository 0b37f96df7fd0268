"""Responses, conversations and chat completions: streams, so it runs on the streaming runtime."""

from stint.bootstrap import make_services
from stint.http.app import create_app

app = create_app("responses", make_services=make_services, buffered=False)
