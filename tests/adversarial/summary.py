"""Summary of the most expensive cases at the end of a test run."""

from typing import Any

PROPERTY = "costs of a hostile request"


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print the cases with the longest callbacks, the most CPU time, and the most memory."""
    reports = [report for kind in ("passed", "failed") for report in terminalreporter.stats.get(kind, [])]
    found = [
        (costs, f"{report.nodeid.rpartition('[')[2].rstrip(']')}: {request}")
        for report in reports
        for name, value in report.user_properties
        if name == PROPERTY
        for request, costs in value.items()
    ]
    if not found:
        return
    terminalreporter.section("hostile requests")
    for label, unit, scale, key in (
        ("slowest", "s of CPU time", 1, "cpu"),
        ("longest in the event loop", "s at a stretch", 1, "stretch"),
        ("largest", "MB more memory", 1_000_000, "grown"),
    ):
        found.sort(key=lambda each: -each[0][key])
        for costs, request in found[: 20 if terminalreporter.config.option.verbose > 0 else 1]:
            terminalreporter.line(f"{label}: {costs[key] / scale:.2f} {unit}: {request}")
