"""Request bodies as JSON."""

from tests.adversarial.case import Case, case, get


@case
def ordinary_request() -> Case:
    """Show what costs nothing."""
    answer = yield get("/v1/models")
    assert answer.status == 200
