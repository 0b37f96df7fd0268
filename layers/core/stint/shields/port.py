"""The port every kind of shield implements."""

from collections.abc import Sequence
from typing import Any, Literal, Protocol

from stint.dataclasses import dataclass, field
from stint.domain.inference import ModelMessage
from stint.domain.steps import SafetyViolation

Touchpoint = Literal["user-input", "assistant-output"]
REFUSAL = "I can't answer that. Can I help with something else?"
"""The default text that replaces a blocked one."""


@dataclass(frozen=True, slots=True)
class Shield:
    """A registered shield, as its provider uses it."""

    shield_id: str
    provider_id: str
    provider_shield_id: str
    params: dict[str, Any] = field(default_factory=dict)


class ShieldProvider(Protocol):
    """Checks messages against the shields of one kind.

    With `asks_model`, `provider_shield_id` is a model id. A registration may have a registered model name; the provider
    always gets the id that the router knows.
    """

    asks_model: bool

    def validate(self, shield: Shield) -> None:
        """Check a shield's registration without a network call.

        Raises:
            InvalidRequest: a parameter is invalid for this kind of shield; the message names it.
        """
        ...

    async def check(
        self, shield: Shield, messages: Sequence[ModelMessage], touchpoint: Touchpoint
    ) -> SafetyViolation | None:
        """Check the last messages in the context of the conversation; return None if they are safe.

        The last messages are those after the last one of the other side: a user's message with its documents, or the
        results of several calls. `stint.shields.texts.last_messages` returns them.

        Raises:
            ShieldFailed: the shield returned no verdict; the messages count as not checked.
        """
        ...
