from stint.domain.expiry import DAY_SECONDS, MAX_SECONDS
from stint.domain.openai.containers import Container


def container(active_for: int) -> Container:
    return Container(id="cntr_1", created_at=1_000, last_active_at=1_000 + active_for, name="c")


def test_a_container_expires_after_its_last_activity() -> None:
    assert container(0).expires_at == 1_000 + 20 * 60
    assert container(7 * DAY_SECONDS).expires_at == 1_000 + 7 * DAY_SECONDS + 20 * 60


def test_an_always_active_container_expires_before_its_first_files() -> None:
    """The bucket removes files after a fixed time."""
    assert container(MAX_SECONDS - 1).expires_at == 1_000 + MAX_SECONDS
