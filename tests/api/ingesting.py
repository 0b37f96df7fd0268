"""A worker for one request that inserts."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from tests.api.app_fixture import AppFixture, wait_until


@contextmanager
def ingesting(app: AppFixture) -> Iterator[None]:
    """Ingest what one request inserts, in another thread."""

    def work() -> None:
        wait_until(lambda: bool(app.desk.ingestions))
        app.ingest()

    with ThreadPoolExecutor(1) as thread:
        done = thread.submit(work)
        yield
        done.result()
