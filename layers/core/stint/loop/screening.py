"""Checks of a conversation by several shields at once, with one step for their result.

All shields start together, because each is a model call or a call of another service, and the slowest of them is the
user's wait. The result does not depend on which one answers first: the list is read in its order.

    a shield's verdict                          the result
    a violation of level error                  blocked; later shields of the list are cancelled
    a violation of another level                logged, and passed
    none                                        passed
    it failed, and a later one finds an error   blocked: the text may not leave in any case
    it failed, and no other finds an error      its error is raised: without a verdict no text may pass

A shield of a tool that fails blocks its call, and the run continues (`tool_shields.py`); elsewhere the run fails.
"""

import asyncio
import logging
from collections.abc import Awaitable, Mapping, Sequence
from datetime import datetime

from stint.dataclasses import dataclass, field
from stint.domain.errors import ShieldFailed, StintError, TooLarge
from stint.domain.ids import new_id
from stint.domain.inference import ModelMessage
from stint.domain.run_events import StepStart
from stint.domain.schema import now
from stint.domain.steps import SafetyViolation, ShieldCallStep
from stint.shields.port import Shield, ShieldProvider, Touchpoint

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class BoundShield:
    """A shield with its provider."""

    shield: Shield
    provider: ShieldProvider


@dataclass(frozen=True, slots=True)
class ToolShields:
    """The shields of a tool: those that see the arguments of calls, and those that see the results."""

    input: tuple[BoundShield, ...] = ()
    output: tuple[BoundShield, ...] = ()

    def merge(self, other: "ToolShields") -> "ToolShields":
        """Return the shields of both, each once."""
        return ToolShields(merge_shields(self.input, other.input), merge_shields(self.output, other.output))


@dataclass(frozen=True, slots=True)
class Screening:
    """The result of the shields at one touchpoint, which becomes a step. `metadata` is that of a check of a tool."""

    touchpoint: Touchpoint
    started_at: datetime
    completed_at: datetime
    violation: SafetyViolation | None
    step_id: str = field(default_factory=new_id)
    metadata: Mapping[str, str] | None = None

    def to_step(self, run_id: str) -> ShieldCallStep:
        return ShieldCallStep(
            turn_id=run_id,
            step_id=self.step_id,
            started_at=self.started_at,
            completed_at=self.completed_at,
            violation=self.violation,
            metadata=None if self.metadata is None else dict(self.metadata),
        )


def merge_shields(*lists: Sequence[BoundShield]) -> tuple[BoundShield, ...]:
    """Return the shields of several lists, each once."""
    return tuple({bound.shield.shield_id: bound for bounds in lists for bound in bounds}.values())


def shield_start(step_id: str, metadata: Mapping[str, str]) -> StepStart:
    """Return the start event of a check."""
    return StepStart(step_type="shield_call", step_id=step_id, metadata=dict(metadata))


async def screen(shields: Sequence[BoundShield], messages: Sequence[ModelMessage], touchpoint: Touchpoint) -> Screening:
    """Run all shields concurrently. The result is the first violation of level error, in the order of the list.

    A violation overrides the failure of another shield, because the text is blocked anyway. Violations of other levels
    are logged. Checks that no longer matter are cancelled.

    Raises:
        ShieldFailed: a shield failed, and none found a violation.
    """
    started_at = now()
    checks = [asyncio.create_task(run_shield(bound, messages, touchpoint)) for bound in shields]
    try:
        violation = await first_violation(shields, checks)
    finally:
        for check in checks:
            check.cancel()
        await asyncio.gather(*checks, return_exceptions=True)
    return Screening(touchpoint, started_at, now(), violation)


async def run_shield(
    bound: BoundShield, messages: Sequence[ModelMessage], touchpoint: Touchpoint
) -> SafetyViolation | None:
    """Run one shield.

    Raises:
        ShieldFailed: any error, because without a verdict no text may pass.
        TooLarge: the caller's text exceeds the shield's limit.
    """
    try:
        return await bound.provider.check(bound.shield, messages, touchpoint)
    except (ShieldFailed, TooLarge):
        raise
    except StintError as error:
        raise ShieldFailed(error.message) from error
    # The error's text is not logged: it may have words of the conversation.
    except Exception as error:  # noqa: BLE001 - a provider's fault is no pass
        extra = {"shield_id": bound.shield.shield_id, "fault": type(error).__name__}
        logger.error("A shield failed unexpectedly", extra=extra)
        raise ShieldFailed(f"Shield {bound.shield.shield_id!r} failed unexpectedly.") from None


async def first_violation(
    shields: Sequence[BoundShield], checks: Sequence[Awaitable[SafetyViolation | None]]
) -> SafetyViolation | None:
    failure: StintError | None = None
    for bound, check in zip(shields, checks, strict=True):
        try:
            violation = await check
        except (ShieldFailed, TooLarge) as error:
            # Not raised yet: a later shield may know that the text is forbidden, which is the more useful answer.
            failure = failure or error
            continue
        if violation is None:
            continue
        if violation.violation_level == "error":
            return violation
        found = {"shield_id": bound.shield.shield_id, "level": violation.violation_level}
        logger.warning("A shield reported a violation without blocking it", extra=found)
    if failure is not None:
        raise failure
    return None
