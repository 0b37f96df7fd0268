"""The parts of the time until the first event of a response."""

from infra.bench.first_event import PARTS, Stopwatch, render


def test_the_parts_are_medians_in_milliseconds() -> None:
    runs = [
        {"received": 0.0, "started": 0.002, "stored": 0.005, "accepted": 0.004, "ready": 0.005, "sent": end}
        for end in (0.006, 0.007, 0.1)
    ]

    lines = render(runs).splitlines()[2:]

    assert [float(line.split()[-1]) for line in lines] == [2.0, 3.0, 2.0, 2.0, 7.0, 3.0]
    assert [line[:40].strip() for line in lines] == list(PARTS)


async def test_a_mark_is_noted_once_when_its_function_has_ended() -> None:
    stopwatch = Stopwatch()

    async def double(number: int) -> int:
        assert "stored" not in stopwatch.marks
        return 2 * number

    assert await stopwatch.after(double, "stored")(2) == 4

    first = stopwatch.marks["stored"]
    stopwatch.note("stored")
    assert stopwatch.marks["stored"] == first
