"""Llama Guard 3: a language model that classifies conversations, from any configured model provider.

The prompt and the answers are those of the model card of Llama Guard 3
(https://www.llama.com/docs/model-cards-and-prompt-formats/llama-guard-3/).
"""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import aclosing
from itertools import groupby
from typing import Any, cast

from stint.domain.errors import InvalidRequest, ShieldFailed, StintError
from stint.domain.inference import (
    AssistantAnswer,
    Decoding,
    InferenceRequest,
    ModelMessage,
    SystemText,
    TextChunk,
    ToolResult,
    UserInput,
)
from stint.domain.steps import SafetyViolation
from stint.models.port import ChatModel
from stint.shields.port import REFUSAL, Shield, Touchpoint
from stint.shields.texts import format_message

CATEGORIES = {
    "S1": "Violent Crimes",
    "S2": "Non-Violent Crimes",
    "S3": "Sex Crimes",
    "S4": "Child Exploitation",
    "S5": "Defamation",
    "S6": "Specialized Advice",
    "S7": "Privacy",
    "S8": "Intellectual Property",
    "S9": "Indiscriminate Weapons",
    "S10": "Hate",
    "S11": "Self-Harm",
    "S12": "Sexual Content",
    "S13": "Elections",
    "S14": "Code Interpreter Abuse",
}
PROMPT = """\
Task: Check if there is unsafe content in '{role}' messages in conversations according our safety policy with the \
below categories.

<BEGIN UNSAFE CONTENT CATEGORIES>
{categories}
<END UNSAFE CONTENT CATEGORIES>

<BEGIN CONVERSATION>

{conversation}

<END CONVERSATION>

Provide your safety assessment for ONLY THE LAST {role} message in the above conversation:
 - First line must read 'safe' or 'unsafe'.
 - If unsafe, a second line must include a comma-separated list of violated categories."""
UNSAFE = re.compile(r"unsafe[^\S\n]*+\n\s*+(S\d+(?:\s*+,\s*+S\d+)*+)")
MARKERS = re.compile(r"<(?=\||(?:BEGIN|END) )")
LONGEST_ANSWER = 128
"""Maximum tokens of an answer, enough for all fourteen categories."""


class LlamaGuard:
    """Calls the Llama Guard 3 model whose id is `provider_shield_id`.

    `params.excluded_categories` lists categories (S1 to S14) to ignore. The model reads texts only: an image becomes a
    note in its prompt, and a tool call its name and arguments.
    """

    def __init__(self, resolve: Callable[[str], tuple[ChatModel, str]], *, asks_model: bool = True) -> None:
        """`resolve` returns the adapter of a model id and the provider's own id (`Router.resolve`).

        Without `asks_model`, the ids are those of one provider, and no names of registered models.
        """
        self._resolve, self.asks_model = resolve, asks_model

    def validate(self, shield: Shield) -> None:
        """Check a shield's registration; see the port."""
        self._resolve(shield.provider_shield_id)
        categories_of(shield)

    async def check(
        self,
        shield: Shield,
        messages: Sequence[ModelMessage],
        touchpoint: Touchpoint,  # noqa: ARG002 - the role of the last message says it
    ) -> SafetyViolation | None:
        """Check the last messages in the context of the conversation; see the port."""
        try:
            categories = categories_of(shield)
            answer = await self._ask(shield.provider_shield_id, write_prompt(messages, categories))
        except ShieldFailed:
            raise
        except StintError as error:
            raise ShieldFailed(
                f"Shield {shield.shield_id!r} returned no verdict: its model {shield.provider_shield_id!r} failed: "
                f"{error.message}"
            ) from error
        violated = read_judgement(answer, shield.shield_id)
        # An excluded category does not count, and an unknown one does: the model says that the text is unsafe.
        counted = [code for code in violated if code in categories or code not in CATEGORIES]
        if not counted:
            return None
        metadata = {"violation_type": ",".join(counted)}
        return SafetyViolation(violation_level="error", user_message=REFUSAL, metadata=metadata)

    async def _ask(self, model_id: str, prompt: str) -> str:
        model, provider_model_id = self._resolve(model_id)
        decoding = Decoding(temperature=0.0, max_tokens=LONGEST_ANSWER)
        request = InferenceRequest(provider_model_id, (UserInput(prompt),), decoding=decoding)
        texts = []
        # Every adapter streams with an async generator, which must be closed in the task that opened it.
        async with aclosing(cast("Any", model.stream(request))) as chunks:
            async for chunk in chunks:
                if isinstance(chunk, TextChunk):
                    texts.append(chunk.text)
        return "".join(texts)


def categories_of(shield: Shield) -> dict[str, str]:
    """Return the categories that are not excluded.

    Raises:
        InvalidRequest: `excluded_categories` is not a list of known categories, or excludes all.
    """
    excluded = shield.params.get("excluded_categories") or []
    unknown = [code for code in excluded if code not in CATEGORIES] if isinstance(excluded, list) else [excluded]
    if unknown or len(set(excluded)) == len(CATEGORIES):
        raise InvalidRequest(
            f"Shield {shield.shield_id!r}: params.excluded_categories must be a list of some of "
            f"{', '.join(CATEGORIES)}, not {excluded!r}.",
            param="params.excluded_categories",
        )
    return {code: name for code, name in CATEGORIES.items() if code not in excluded}


def write_prompt(messages: Sequence[ModelMessage], categories: dict[str, str]) -> str:
    """Write the policy and the conversation. The model judges the last role in it.

    Raises:
        ShieldFailed: the conversation has no text.
    """
    said = [message for message in messages if not isinstance(message, SystemText)]
    if not said:
        raise ShieldFailed("There is no message to check.")
    return PROMPT.format(
        role=role_of(said[-1]),
        categories="\n".join(f"{code}: {name}." for code, name in categories.items()),
        conversation="\n\n".join(write_conversation(said)),
    )


def write_conversation(messages: Sequence[ModelMessage]) -> Iterator[str]:
    """Write the messages of both roles in order.

    Successive messages of one role are joined, because only the last message is judged: a document or a second result
    would otherwise not be checked. Text that looks like a marker of the prompt is broken up.
    """
    for role, group in groupby(messages, key=role_of):
        yield f"{role}: " + MARKERS.sub("< ", "\n".join(format_message(message) for message in group))


def role_of(message: ModelMessage) -> str:
    match message:
        case AssistantAnswer():
            return "Assistant"
        case ToolResult():
            return "Tool"
        case _:
            return "User"


def read_judgement(answer: str, shield_id: str) -> list[str]:
    """Return the codes of the violated categories; empty if the conversation is safe.

    Raises:
        ShieldFailed: the answer does not have the expected form.
    """
    text = answer.strip()
    if text == "safe":
        return []
    if found := UNSAFE.fullmatch(text):
        return [code.strip() for code in found[1].split(",")]
    raise ShieldFailed(
        f"Shield {shield_id!r} returned no verdict: its model answered neither 'safe' nor 'unsafe' with categories. "
        "Is it a Llama Guard 3 model?"
    )
