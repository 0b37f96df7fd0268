"""The last line of a run: how many routes were attacked how often, and what got in."""

from typing import Any

from tests.security.attacks import PROPERTY


def pytest_unconfigure(config: Any) -> None:
    """Print the sums of the attacks of all tests, and what the worst of them cost."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    stats = reporter.stats if reporter else {}
    reports = [report for kind in ("passed", "failed") for report in stats.get(kind, [])]
    found = [value for report in reports for name, value in report.user_properties if name == PROPERTY]
    if found:
        reporter.line(line_of(found))


def line_of(found: list[dict[str, Any]]) -> str:
    """Return the line for the counts of all tests."""
    routes = {name for each in found for name in each["routes"] if " /" in name}
    attacks = sum(sum(each["routes"].values()) for each in found)
    got_in = sum(each["in"] for each in found)
    slowest = max(each["slowest"] for each in found)
    megabytes = max(each["kilobytes"] for each in found) / 1000
    return (
        f"security: {len(routes)} routes x {attacks} attacks, {got_in} in; "
        f"slowest {slowest:.2f} s, most memory {megabytes:.0f} MB"
    )
