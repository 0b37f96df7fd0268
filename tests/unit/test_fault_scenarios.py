"""Each POST that creates something has a scenario of `make test-faults`."""

from collections import Counter

from tests.faults.routes import CHANGING, CREATING, RUNNING, SAME_AS, STORING_NOTHING
from tests.faults.scenarios import SCENARIOS
from tests.route_rules import OF_SAVED_AGENTS, ROUTES, RULES

POSTS = {path: rule for method, path, rule in (*OF_SAVED_AGENTS, *ROUTES) if method == "POST"}
READING = [path for path, rule in POSTS.items() if not rule.repeated.is_remembered]


def test_each_post_is_in_one_group() -> None:
    groups = [*CREATING, *RUNNING, *SAME_AS, *CHANGING, *STORING_NOTHING, *READING]

    assert {path for path, count in Counter(groups).items() if count > 1} == set()
    assert set(groups) == POSTS.keys()


def test_the_scenarios_of_routes_exist() -> None:
    names = [kind.name for kind in SCENARIOS]

    assert len(names) == len(set(names))
    assert {*CREATING.values(), *RUNNING.values()} <= set(names)
    assert {path for path in SAME_AS.values() if path not in {**CREATING, **RUNNING}} <= RULES.keys()
