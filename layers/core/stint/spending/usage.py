"""Sums of usage: written when a run ends, and read by group.

A run adds its amounts to the record of its day and source (key, subject, agent, session and model), which are the
finest groups of a report. So any report is a sum of records of its days, and a run costs one write for each model that
it has called, at least one. What is not of a model counts for the one that has cost most: the run itself, its time, its
units and its tool calls. A run counts for the day on which it ends, in UTC.

The sums are for reports, not for limits: a write that fails is logged and lost, and the run that it is about succeeds.
The limits have counters of their own (`blocks.py`).
"""

import logging
import time
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta

from stint.caller import find_principal
from stint.dataclasses import asdict, dataclass
from stint.domain.errors import Forbidden, InvalidRequest, StintError
from stint.domain.principals import Principal
from stint.domain.receipts import COUNTS, Consumption
from stint.domain.usage import UsageGroup, UsageSource, UsageSum, UsageSums
from stint.spending.holders import MICRO
from stint.store.parallel import map_concurrently
from stint.store.store import Store

logger = logging.getLogger(__name__)

WRITES = 4
"""Concurrent writes of a run."""
MOST_DAYS = 31
"""Longest range of a report, in days. All records of the range are read."""
FIELDS: dict[UsageGroup, str] = {
    "day": "day",
    "key": "key_id",
    "subject": "subject",
    "agent": "agent_id",
    "session": "session_id",
    "model": "model_id",
}
IDS = ("key_id", "agent_id", "session_id", "subject", "model_id")


@dataclass(frozen=True, slots=True)
class UsageReports:
    """The sums of a tenant. Without `enabled`, none are written.

    With `hides_cache`, they are shown without the use of a provider's cache.
    """

    tenant: str
    store: Store
    enabled: bool
    hides_cache: bool = False

    async def add(
        self, agent_id: str, session_id: str, consumption: Consumption, by_model: Mapping[str, Consumption]
    ) -> None:
        """Add a run to the sums of today, with its part of each model. A failure is only logged."""
        principal = find_principal()
        key_id, subject = (principal.key_id, principal.subject) if principal else ("", "")
        day = datetime.fromtimestamp(time.time(), UTC).date().isoformat()

        async def add_part(part: tuple[str, dict[str, int]]) -> None:
            source = UsageSource(key_id, agent_id, session_id, subject, part[0])
            await self.store.usage.add(self.tenant, day, source, part[1])

        try:
            await map_concurrently(add_part, parts_of(consumption, by_model), calls=WRITES)
        except StintError as error:
            logger.warning("The usage of a run was not added to the sums", extra={"error": error.message})

    async def read(
        self, start: date | None, end: date | None, group_by: Collection[UsageGroup], source: UsageSource
    ) -> UsageSums:
        """Return the sums from `start` to `end`, both included; by default of today. `source` filters by its ids.

        A caller without the scope `admin` reads the usage of its own key. If it has none, such as one with a token,
        that of its subject.

        Raises:
            InvalidRequest: there are no sums, or the range is too long.
            Forbidden: the caller may not read the usage of another key or subject.
        """
        if not self.enabled:
            raise InvalidRequest(
                "Usage is not summed. Set STINT_USAGE_SUMS to true (parameter UsageSums).", code="not_enabled"
            )
        caller = find_principal()
        refuse_others(caller, source)
        groups = [name for name in FIELDS if name in group_by] or ["day"]
        sums: dict[tuple[str, ...], UsageSum] = {}
        for day, found, amounts in await self.store.usage.read(self.tenant, days_of(start, end)):
            if is_own(caller, found) and matches(found, source):
                add_to(sums, groups, day, found, amounts=amounts)
        found_sums = [sums[key] for key in sorted(sums)]
        return UsageSums(data=[each.without_cache() for each in found_sums] if self.hides_cache else found_sums)


def parts_of(consumption: Consumption, by_model: Mapping[str, Consumption]) -> list[tuple[str, dict[str, int]]]:
    """Return the amounts of a run by model. The first one has also what is not of a model; "" if none was called."""
    first, *others = sorted(by_model, key=lambda name: cost_of(by_model[name]), reverse=True) or [""]
    parts = [(name, amounts_of(by_model[name])) for name in others]
    rest = {name: getattr(consumption, name) for name in COUNTS}
    for _, amounts in parts:
        rest |= {name: rest[name] - amounts[name] for name in COUNTS}
    # Dollars are not subtracted: those of the run are unknown if one model has no price.
    dollars = (by_model.get(first, consumption).model_dollars or 0) + consumption.infrastructure_dollars
    return [(first, rest | {"runs": 1, "microdollars": round(dollars * MICRO)}), *parts]


def amounts_of(consumption: Consumption) -> dict[str, int]:
    """Return the amounts of a model's calls."""
    dollars = consumption.model_dollars or 0
    return {name: getattr(consumption, name) for name in COUNTS} | {"microdollars": round(dollars * MICRO)}


def cost_of(consumption: Consumption) -> tuple[float, int]:
    """Return what decides which model of a run has cost most: its price, then its tokens."""
    return consumption.model_dollars or 0.0, consumption.input_tokens + consumption.output_tokens


def refuse_others(caller: Principal | None, source: UsageSource) -> None:
    """Raise Forbidden if a caller without the scope `admin` filters by another key or subject than its own."""
    if reads_all(caller):
        return
    own = caller is not None and source.key_id in ("", caller.key_id) and source.subject in ("", caller.subject)
    if not own:
        raise Forbidden("The usage of others needs the scope admin. Use a key with this scope.")


def reads_all(caller: Principal | None) -> bool:
    """Return whether a caller may read the usage of its whole tenant."""
    return caller is None or "admin" in caller.scopes


def is_own(caller: Principal | None, found: UsageSource) -> bool:
    """Return whether a caller may read the usage of a source: its key's, or without one its subject's."""
    if caller is None or reads_all(caller):
        return True
    # Among callers without a key, such as those with a token, the subject decides.
    return found.key_id == caller.key_id and (bool(caller.key_id) or found.subject == caller.subject)


def matches(found: UsageSource, wanted: UsageSource) -> bool:
    """Return whether a source has all ids of a filter."""
    pairs = [(getattr(wanted, name), getattr(found, name)) for name in IDS]
    return all(asked in ("", has) for asked, has in pairs)


def add_to(
    sums: dict[tuple[str, ...], UsageSum],
    groups: Sequence[UsageGroup],
    day: str,
    found: UsageSource,
    amounts: dict[str, int],
) -> None:
    """Add a sum to that of its group."""
    values = {"day": day} | asdict(found)
    ids = {FIELDS[name]: values[FIELDS[name]] for name in groups}
    summed = sums.setdefault(tuple(ids.values()), UsageSum(**ids))
    for name in ("runs", *COUNTS):
        setattr(summed, name, getattr(summed, name) + amounts.get(name, 0))
    summed.dollars = round((summed.dollars or 0.0) + amounts.get("microdollars", 0) / MICRO, 6)


def days_of(start: date | None, end: date | None) -> list[str]:
    """Return the days of a range. Raises InvalidRequest."""
    last = end or datetime.fromtimestamp(time.time(), UTC).date()
    first = start or last
    count = (last - first).days + 1
    if not 1 <= count <= MOST_DAYS:
        raise InvalidRequest(f"The range from start to end must have 1 to {MOST_DAYS} days.", param="start")
    return [(first + timedelta(days=number)).isoformat() for number in range(count)]
