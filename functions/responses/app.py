"""Responses, conversations and chat completions: streams, so it runs on the streaming runtime."""

from stint.bootstrap.openai import make_response_services
from stint.http.app import create_app
from stint.http.routes import chat, conversations, responses

app = create_app(
    "responses",
    responses.router,
    conversations.router,
    chat.router,
    make_services=make_response_services,
    buffered=False,
)
