"""The port every kind of shield implements."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from stint.domain.inference import ModelMessage
from stint.domain.steps import SafetyViolation

Touchpoint = Literal["user-input", "assistant-output"]
REFUSAL = "I can't answer that. Can I help with something else?"
"""What the user is told in place of what was blocked, where nobody chose other words."""


@dataclass(frozen=True, slots=True)
class Shield:
    """A registered shield, as its provider needs it."""

    shield_id: str
    provider_id: str
    provider_shield_id: str
    params: dict[str, Any] = field(default_factory=dict)


class ShieldProvider(Protocol):
    """Checks messages against the shields of one kind.

    Where `asks_model` is set, `provider_shield_id` is the id of a model, which may be a registered name when the shield
    is registered and is what the router knows when the provider gets it.
    """

    asks_model: bool

    def validate(self, shield: Shield) -> None:
        """Check a shield's registration, without asking anybody.

        Raises:
            InvalidRequest: names the parameter that this kind of shield cannot use.
        """
        ...

    async def check(
        self, shield: Shield, messages: Sequence[ModelMessage], touchpoint: Touchpoint
    ) -> SafetyViolation | None:
        """Check what one side said last, in the light of what was said before; None when there is no objection.

        What one side said last is every message behind the other side's last one: a user's message with its documents,
        or the results of several calls. `stint.shields.texts.spoken` gives it.

        Raises:
            ShieldFailed: the shield gave no judgement; that is no pass.
        """
        ...
