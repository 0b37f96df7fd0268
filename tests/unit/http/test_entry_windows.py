import pytest

from stint.domain.errors import InvalidRequest
from stint.domain.paging import Window
from stint.http.entry_windows import MAX_LIMIT, MAX_START, entry_window


@pytest.mark.parametrize(
    ("given", "window"),
    [
        ((None, None), Window(0, None)),
        ((0, -1), Window(0, None)),
        ((3, 0), Window(3, 0)),
        ((10**22, 10**22), Window(MAX_START, MAX_LIMIT)),
        ((None, None, "asc"), Window(by_id=True)),
        ((None, 5, "desc", "x", "Abc"), Window(0, 5, after="x", newest_first=True, name="Abc", by_id=True)),
        ((3, 2, "desc", "x"), Window(3, 2, after="x", newest_first=True, by_id=True)),
    ],
)
async def test_windows(given: tuple[int | None, int | None], window: Window) -> None:
    assert await entry_window({}, *given) == window


@pytest.mark.parametrize(
    ("start_index", "limit", "searched", "name"),
    [(-1, None, None, "start_index"), (None, -2, None, "limit"), (1, None, "x", "start_index")],
)
async def test_other_windows_are_refused_by_name(
    start_index: int | None, limit: int | None, searched: str | None, name: str
) -> None:
    with pytest.raises(InvalidRequest) as refused:
        await entry_window({}, start_index, limit, name=searched)

    assert refused.value.param == name
