import threading
import uuid

from stint.domain.ids import is_id, new_id


def test_ids_are_lowercase_uuids_of_version_7_in_creation_order() -> None:
    ids = [new_id() for _ in range(10_000)]

    assert ids == sorted(ids)
    assert len(set(ids)) == len(ids)
    assert {uuid.UUID(each).version for each in ids[:10]} == {7}
    assert {uuid.UUID(each).variant for each in ids[:10]} == {uuid.RFC_4122}
    assert all(is_id(each) for each in ids)


def test_threads_share_one_order() -> None:
    made: list[list[str]] = [[] for _ in range(4)]

    def make(ids: list[str]) -> None:
        ids += [new_id() for _ in range(2_000)]

    threads = [threading.Thread(target=make, args=(ids,)) for ids in made]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert all(ids == sorted(ids) for ids in made)
    assert len({each for ids in made for each in ids}) == 8_000


def test_an_id_comes_after_one_of_a_clock_that_is_ahead() -> None:
    ahead = "ffffffff-0000-7fff-bfff-ffffffffffff"

    after = new_id(after=ahead)

    assert after > ahead
    assert new_id() < ahead


def test_other_texts_are_no_ids() -> None:
    known = new_id()

    for text in ("", "nope", known.upper(), f" {known}", f"{known}\n", known.replace("-", ""), f"{known}:0001"):
        assert not is_id(text)
