"""Five-field cron expressions, as of crontab(5), translated to those of EventBridge Scheduler.

Both have the same fields, but not the same values, so each field is read as numbers and written anew:

                      cron                                Scheduler
    fields            minute hour day month weekday       the same, and a year
    weekday           0-7, Sunday is 0 and 7              1-7, Sunday is 1
    day and weekday   if neither begins with `*`, one     one of them must be `?`
                      that matches is enough

So an expression that limits both is refused by name, as are the additions of other schedulers (`@daily`, `L`, `W`, `#`,
a field of seconds or years). The time zone is the schedule's. A time that a change of clocks skips does not occur, and
one that it repeats occurs once.

https://docs.aws.amazon.com/scheduler/latest/UserGuide/schedule-types.html#cron-based
https://docs.aws.amazon.com/scheduler/latest/UserGuide/schedule-types.html#daylist-savings-time
"""

from collections.abc import Mapping, Sequence

from stint.dataclasses import dataclass
from stint.domain.errors import InvalidRequest

LONGEST = 256
"""Maximum characters of an expression. Scheduler's have the same limit, and no translation has more than 240.

https://docs.aws.amazon.com/scheduler/latest/APIReference/API_CreateSchedule.html
"""
LONGEST_QUOTE = 40
LONGEST_MONTHS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
"""The days of each month, February's in a leap year."""


@dataclass(frozen=True, slots=True)
class CronField:
    """A field of an expression, and its least and greatest value."""

    name: str
    least: int
    greatest: int
    names: Mapping[str, int]
    """The numbers of values that have a name, in lower case."""


def _number(names: str, start: int) -> Mapping[str, int]:
    return {name: number for number, name in enumerate(names.split(), start)}


MINUTE, HOUR, DAY, MONTH, WEEKDAY = FIELDS = (
    CronField("minute", 0, 59, {}),
    CronField("hour", 0, 23, {}),
    CronField("day of the month", 1, 31, {}),
    CronField("month", 1, 12, _number("jan feb mar apr may jun jul aug sep oct nov dec", 1)),
    CronField("weekday", 0, 7, _number("sun mon tue wed thu fri sat", 0)),
)


def to_schedule_expression(expression: str) -> str:
    """Return the `cron(...)` of Scheduler with the same times.

    Raises InvalidRequest with the code `invalid_cron_expression`, also for a date that never comes, or
    `unsupported_cron_expression` if Scheduler has no such expression.
    """
    texts = _split(expression)
    minutes, hours, days, months, weekdays = [
        _read_field(text, field) for text, field in zip(texts, FIELDS, strict=True)
    ]
    if not any(day <= LONGEST_MONTHS[month - 1] for month in months for day in days):
        raise _invalid("none of its months has its day.")
    weekdays = sorted({weekday % 7 + 1 for weekday in weekdays})
    every_day, every_weekday = len(days) == 31, len(weekdays) == 7
    starred = texts[2].startswith("*") or texts[4].startswith("*")
    if not starred or not (every_day or every_weekday):
        raise _unsupported("it limits both the day of the month and the weekday. Write * for one of them.")
    chosen = (_write(days, DAY), "?") if every_weekday else ("?", _write(weekdays))
    return f"cron({_write(minutes, MINUTE)} {_write(hours, HOUR)} {chosen[0]} {_write(months, MONTH)} {chosen[1]} *)"


def _split(expression: str) -> Sequence[str]:
    """Return the texts of the five fields."""
    if len(expression) > LONGEST:
        raise _invalid(f"it has more than {LONGEST} characters.")
    if expression.lstrip().startswith("@"):
        raise _unsupported("it is a macro. Write five fields, such as 0 0 * * * for every midnight.")
    texts = expression.split()
    if len(texts) in (6, 7):
        raise _unsupported(f"it has {len(texts)} fields, perhaps with seconds or a year. Write five.")
    if len(texts) != 5:
        raise _invalid("it does not have five fields: minute, hour, day of the month, month, weekday.")
    return texts


def _read_field(text: str, field: CronField) -> list[int]:
    """Return the numbers of a field in their order."""
    numbers: set[int] = set()
    for part in text.lower().split(","):
        numbers.update(_read_part(part, field))
    return sorted(numbers)


def _read_part(part: str, field: CronField) -> range:
    """Return the numbers of a part of a field: `*`, a value or a range. Those of more than a value may have a step."""
    span, slash, step = part.partition("/")
    first, dash, last = span.partition("-")
    if span == "*":
        start, end = field.least, field.greatest
    else:
        start = _read_value(first, field)
        end = _read_value(last, field) if dash else start
    if end < start:
        raise _invalid(f"the range {_quote(span)} of the {field.name} ends before it begins. Write two ranges.")
    if not slash:
        return range(start, end + 1)
    if span != "*" and not dash:
        raise _invalid(
            f"{_quote(part)} of the {field.name} has a step, but no range. Write {start}-{field.greatest}/N."
        )
    if not _is_number(step) or not 1 <= int(step) <= field.greatest:
        raise _invalid(f"the step {_quote(step)} of the {field.name} is not a number from 1 to {field.greatest}.")
    return range(start, end + 1, int(step))


def _read_value(text: str, field: CronField) -> int:
    """Return the number of a value."""
    if text in field.names:
        return field.names[text]
    if not _is_number(text):
        if field in (DAY, WEEKDAY) and (text in ("?", "l", "w", "lw") or text.endswith(("l", "w")) or "#" in text):
            raise _unsupported(f"{_quote(text)} of the {field.name} is not of cron (?, L, W and # are not).")
        raise _invalid(f"{_quote(text)} is not a {field.name}.")
    if not field.least <= int(text) <= field.greatest:
        raise _invalid(f"the {field.name} {int(text)} is not from {field.least} to {field.greatest}.")
    return int(text)


def _is_number(text: str) -> bool:
    return len(text) in (1, 2) and text.isascii() and text.isdigit()


def _write(numbers: Sequence[int], field: CronField | None = None) -> str:
    """Return numbers as Scheduler takes them: `*` for all of a field, else values and ranges."""
    if field is not None and len(numbers) == field.greatest - field.least + 1:
        return "*"
    starts = [number for number in numbers if number - 1 not in numbers]
    ends = [number for number in numbers if number + 1 not in numbers]
    spans = zip(starts, ends, strict=True)
    return ",".join(str(start) if start == end else f"{start}-{end}" for start, end in spans)


def _quote(text: str) -> str:
    return repr(text[:LONGEST_QUOTE])


def _invalid(problem: str) -> InvalidRequest:
    message = f"The cron expression is invalid: {problem}"
    return InvalidRequest(message, code="invalid_cron_expression", param="expression")


def _unsupported(problem: str) -> InvalidRequest:
    message = f"The cron expression is not supported: {problem}"
    return InvalidRequest(message, code="unsupported_cron_expression", param="expression")
