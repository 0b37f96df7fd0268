"""Fake chat completions server for Llama Guard 3, which judges the last message in its prompt.

A message with `bomb` is unsafe by S9, one with `fraud` by S2, and one with both by both. A prompt that is not one of
Llama Guard is refused with 400.
"""

import re

from tests.servers import chat_completions as chat
from tests.servers.chat_completions import ChatCompletionsServer
from tests.servers.scripted_http import Received, Reply, ScriptedHTTPServer

PROMPT = re.compile(
    r"Task: Check if there is unsafe content in '(?P<role>User|Assistant|Tool)' messages.*"
    r"<BEGIN UNSAFE CONTENT CATEGORIES>\n(?P<categories>.*)\n<END UNSAFE CONTENT CATEGORIES>\n\n"
    r"<BEGIN CONVERSATION>\n\n(?P<conversation>.*)\n\n<END CONVERSATION>\n\n"
    r"Provide your safety assessment for ONLY THE LAST (?P=role) message",
    re.DOTALL,
)
FORBIDDEN = {"fraud": "S2", "bomb": "S9"}


class LlamaGuardServer(ChatCompletionsServer):
    """Server of `POST /v1/chat/completions`; `prompts` are the received prompts."""

    def __init__(self) -> None:
        ScriptedHTTPServer.__init__(self, answer)

    @property
    def prompts(self) -> list[str]:
        return [chat.text_of(body["messages"][0]["content"]) for body in self.bodies]

    def script_answer(self, text: str) -> None:
        self.script(chat.stream(*chat.words(text)))


def answer(received: Received) -> Reply:
    body = received.json()
    fault = chat.find_fault(body)
    if fault:
        return chat.error(400, fault, type="invalid_request_error")
    found = PROMPT.match(chat.text_of(body["messages"][0]["content"]))
    if len(body["messages"]) != 1 or found is None:
        return chat.error(400, "this is no prompt of Llama Guard", type="invalid_request_error")
    last = found["conversation"].split(f"\n\n{found['role']}: ")[-1]
    codes = [code for word, code in FORBIDDEN.items() if word in last and f"{code}: " in found["categories"]]
    return chat.stream(*chat.words(f"unsafe\n{','.join(codes)}" if codes else "safe"))
