"""A worker that ingests while requests insert."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event

from tests.api.app_fixture import AppFixture

POLL_SECONDS = 0.005


@contextmanager
def ingesting(app: AppFixture) -> Iterator[None]:
    """Ingest in another thread what requests insert, until they are answered. An error of it is raised at the end."""
    answered = Event()

    def work() -> None:
        while not answered.wait(POLL_SECONDS):
            app.ingest()

    with ThreadPoolExecutor(1) as thread:
        working = thread.submit(work)
        try:
            yield
        finally:
            answered.set()
        working.result()
