"""The function of responses, conversations, chat completions, inference and end users.

It streams, so it runs on the streaming runtime.
"""

from stint.bootstrap.openai import OpenAIComposition
from stint.bootstrap.restore import start
from stint.http.app import create_app
from stint.http.requests import LazyRouter
from stint.http.routes import chat, conversations, responses
from stint.settings import load_settings

composition = OpenAIComposition(load_settings)
start(composition)
app = create_app(
    "responses",
    responses.router,
    conversations.router,
    chat.router,
    LazyRouter("stint.http.routes.stored_chats", "/v1/chat/completions"),
    LazyRouter("stint.http.routes.completions", "/v1/completions"),
    LazyRouter("stint.http.routes.inference", "/v1/inference/"),
    LazyRouter("stint.http.routes.end_users", "/v1/admin/users/"),
    make_services=composition.make_openai_services,
    read_settings=load_settings,
    buffered=False,
    open_ahead=composition.open_ahead,
)
