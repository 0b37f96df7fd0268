"""Each POST that creates something has a scenario of `make test-faults`."""

from collections import Counter

from tests.faults.routes import CHANGING, CREATING, SAME_AS, STORING_NOTHING
from tests.faults.scenarios import SCENARIOS

from stint.http.scopes import READING_PATHS, ROUTE_SCOPES

POSTS = {route.removeprefix("POST ") for route in ROUTE_SCOPES if route.startswith("POST ")}


def test_each_post_is_in_one_group() -> None:
    groups = [*CREATING, *SAME_AS, *CHANGING, *STORING_NOTHING, *READING_PATHS]

    assert {path for path, count in Counter(groups).items() if count > 1} == set()
    assert set(groups) == POSTS


def test_the_scenarios_of_routes_exist() -> None:
    names = [kind.name for kind in SCENARIOS]

    assert len(names) == len(set(names))
    assert set(CREATING.values()) <= set(names)
    assert {path for path in SAME_AS.values() if path not in CREATING} <= ROUTE_SCOPES.keys()
