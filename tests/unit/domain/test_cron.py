"""Cron expressions and their translation, which must have the same times.

The expressions are made from their numbers, so that what they mean is known without a parser of cron.
"""

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, timedelta

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from stint.domain.cron import LONGEST, to_schedule_expression
from stint.domain.errors import InvalidRequest

DATES = [date(2023, 1, 1) + timedelta(days) for days in range(5 * 365)]
MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
WEEKDAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]


@dataclass(frozen=True)
class Written:
    """A field of an expression, and the numbers that it means."""

    text: str
    numbers: frozenset[int]

    @property
    def is_starred(self) -> bool:
        return self.text.startswith("*")


@st.composite
def written_parts(draw: st.DrawFn, least: int, greatest: int, names: list[str]) -> Written:
    def spell(number: int) -> str:
        named = least <= number < least + len(names) and draw(st.booleans())
        return draw(st.sampled_from([str.lower, str.upper, str.title]))(names[number - least]) if named else str(number)

    kind = draw(st.sampled_from(["star", "value", "range"]))
    start, end = sorted(draw(st.tuples(*2 * [st.integers(least, greatest)])))
    if kind == "value":
        return Written(spell(start), frozenset([start]))
    start, end = (least, greatest) if kind == "star" else (start, end)
    text = "*" if kind == "star" else f"{spell(start)}-{spell(end)}"
    step = draw(st.none() | st.integers(1, greatest))
    return Written(text if step is None else f"{text}/{step}", frozenset(range(start, end + 1, step or 1)))


def written_fields(least: int, greatest: int, names: list[str] | None = None) -> st.SearchStrategy[Written]:
    parts = st.lists(written_parts(least, greatest, names or []), min_size=1, max_size=3)
    return parts.map(
        lambda some: Written(",".join(part.text for part in some), frozenset().union(*(part.numbers for part in some)))
    )


def numbers_of(text: str, greatest: int) -> set[int]:
    """Return the numbers of a field of Scheduler."""
    if text == "*":
        return set(range(greatest + 1))
    spans = [[int(number) for number in span.split("-")] for span in text.split(",")]
    return {number for span in spans for number in range(span[0], span[-1] + 1)}


def matches_date(expression: str) -> Callable[[date], bool]:
    _, _, days, months, weekdays, year = expression.removeprefix("cron(").removesuffix(")").split()
    assert year == "*"
    assert [days, weekdays].count("?") == 1
    in_months = numbers_of(months, 12)
    if weekdays == "?":
        of_month = numbers_of(days, 31)
        return lambda day: day.month in in_months and day.day in of_month
    of_week = numbers_of(weekdays, 7)
    return lambda day: day.month in in_months and day.isoweekday() % 7 + 1 in of_week


@given(
    written_fields(0, 59),
    written_fields(0, 23),
    written_fields(1, 31),
    written_fields(1, 12, MONTHS),
    written_fields(0, 7, WEEKDAYS),
)
def test_a_translation_has_the_times_of_the_expression(
    minute: Written, hour: Written, day: Written, month: Written, weekday: Written
) -> None:
    expression = " ".join(field.text for field in (minute, hour, day, month, weekday))
    assume(len(expression) <= LONGEST)
    sundays = {number % 7 for number in weekday.numbers}

    def occurs(each: date) -> bool:
        on_day, on_weekday = each.day in day.numbers, each.isoweekday() % 7 in sundays
        both = day.is_starred or weekday.is_starred  # as crontab(5) says
        return each.month in month.numbers and (on_day and on_weekday if both else on_day or on_weekday)

    try:
        translated = to_schedule_expression(expression)
    except InvalidRequest as error:
        is_limited = len(day.numbers) < 31 and len(sundays) < 7
        if error.code == "unsupported_cron_expression":
            assert is_limited or not (day.is_starred or weekday.is_starred)
        else:
            assert not any(
                day.numbers & set(range(1, 29 + (m != 2) + (m not in (2, 4, 6, 9, 11)) + 1)) for m in month.numbers
            )
        return
    assert re.fullmatch(r"cron\([0-9*,?-]+( [0-9*,?-]+){5}\)", translated)
    assert len(translated) <= 240
    texts = translated.removeprefix("cron(").split()
    assert numbers_of(texts[0], 59) == minute.numbers
    assert numbers_of(texts[1], 23) == hour.numbers
    matches = matches_date(translated)
    assert [each for each in DATES if matches(each)] == [each for each in DATES if occurs(each)]


@pytest.mark.parametrize(
    ("expression", "translated"),
    [
        ("* * * * *", "cron(* * * * ? *)"),
        ("*/15 9-17 * * mon-fri", "cron(0,15,30,45 9-17 ? * 2-6 *)"),
        ("0 0 1 * *", "cron(0 0 1 * ? *)"),
        ("30 6 * * 0", "cron(30 6 ? * 1 *)"),
        ("30 6 * * 7", "cron(30 6 ? * 1 *)"),
        ("30 6 * * 5-7", "cron(30 6 ? * 1,6-7 *)"),
        ("05  08\t29 FEB *", "cron(5 8 29 2 ? *)"),
        ("0 0 */2 * *", "cron(0 0 1,3,5,7,9,11,13,15,17,19,21,23,25,27,29,31 * ? *)"),
        ("0 0 * 1,3,jul-sep */1", "cron(0 0 * 1,3,7-9 ? *)"),
    ],
)
def test_an_expression_is_translated(expression: str, translated: str) -> None:
    assert to_schedule_expression(expression) == translated


@pytest.mark.parametrize(
    ("expression", "told"),
    [
        ("0 0 13 * fri", "both the day of the month and the weekday"),
        ("0 0 */2 * fri", "both the day of the month and the weekday"),
        ("@daily", "macro"),
        ("@reboot", "macro"),
        ("0 0 12 * * *", "6 fields"),
        ("0 0 12 * * ? 2027", "7 fields"),
        ("0 0 L * *", "'l' of the day of the month"),
        ("0 0 15W * *", "'15w' of the day of the month"),
        ("0 0 ? * 1", "'?' of the day of the month"),
        ("0 0 * * 5L", "'5l' of the weekday"),
        ("0 0 * * fri#2", "'fri#2' of the weekday"),
    ],
)
def test_what_scheduler_cannot_express_is_refused_by_name(expression: str, told: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        to_schedule_expression(expression)
    assert (raised.value.code, raised.value.param) == ("unsupported_cron_expression", "expression")
    assert told in raised.value.message


@pytest.mark.parametrize(
    ("expression", "told"),
    [
        ("", "five fields"),
        ("* * * *", "five fields"),
        ("* * * * * * * *", "five fields"),
        ("60 * * * *", "the minute 60 is not from 0 to 59"),
        ("* 24 * * *", "the hour 24"),
        ("* * 0 * *", "the day of the month 0"),
        ("* * * 13 *", "the month 13"),
        ("* * * * 8", "the weekday 8"),
        ("-1 * * * *", "'' is not a minute"),
        ("1,,2 * * * *", "'' is not a minute"),
        ("1.5 * * * *", "'1.5' is not a minute"),
        ("٣ * * * *", "'٣' is not a minute"),
        ("001 * * * *", "'001' is not a minute"),
        ("mon * * * *", "'mon' is not a minute"),
        ("* * * monday *", "'monday' is not a month"),
        ("1-2-3 * * * *", "'2-3' is not a minute"),
        ("*-5 * * * *", "'*' is not a minute"),
        ("* 22-2 * * *", "ends before it begins"),
        ("* * * * fri-sun", "ends before it begins"),
        ("5/15 * * * *", "Write 5-59/N"),
        ("*/0 * * * *", "the step '0'"),
        ("*/90 * * * *", "the step '90'"),
        ("*/ * * * *", "the step ''"),
        ("*/5/5 * * * *", "the step '5/5'"),
        ("*/-5 * * * *", "the step '-5'"),
        ("0 0 30 2 *", "none of its months has its day"),
        ("0 0 31 feb,apr,jun,sep,nov *", "none of its months has its day"),
        (f"{'1,' * 200}1 * * * *", "more than 256 characters"),
        ("9" * 248 + " * * * *", f"'{'9' * 40}' is not a minute"),
        ("*\0 * * * *", "is not a minute"),
    ],
)
def test_an_invalid_expression_is_refused_by_the_name_of_its_part(expression: str, told: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        to_schedule_expression(expression)
    assert (raised.value.code, raised.value.param) == ("invalid_cron_expression", "expression")
    assert told in raised.value.message


def test_the_longest_translation_is_one_that_scheduler_takes() -> None:
    """No field is longer than one that leaves out each third value."""
    assert len(to_schedule_expression("0-59/3,1-59/3 0-23/3,1-23/3 1-31/3,2-31/3 1-12/3,2-12/3 *")) <= 240


@given(st.text(alphabet="0123456789*/-,?#@LWmonfri ", max_size=300) | st.text(max_size=300))
def test_any_text_is_translated_or_refused(text: str) -> None:
    with suppress(InvalidRequest):
        assert len(to_schedule_expression(text)) <= 240
