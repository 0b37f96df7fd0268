import threading
import uuid

from stint.domain.ids import (
    derive_ids,
    hex_of,
    is_id,
    is_name,
    item_name,
    merged_name,
    new_id,
    new_ids_before,
    new_name,
    order_of,
    pack_name,
    place_digits,
    unpack_name,
)


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


def test_a_name_is_a_prefix_and_the_digits_of_an_id() -> None:
    name = new_name("resp")

    assert is_name("resp", name)
    assert name.startswith("resp_")
    assert uuid.UUID(name[5:]).version == 7
    assert not any(is_name("resp", other) for other in ("resp_", "resp_1", name + "0", name.upper(), f"conv{name[4:]}"))


def test_an_item_is_named_after_its_step() -> None:
    step = new_id()

    names = [item_name("msg", step, 1), item_name("fc", step, 2), item_name("fc", step, 123)]

    assert names == [f"msg_{hex_of(step)}01", f"fc_{hex_of(step)}02", f"fc_{hex_of(step)}123"]


def test_merged_items_sort_between_the_items_of_the_output() -> None:
    step = new_id()

    names = [
        merged_name("msg", step, 0, 0),
        item_name("mcpl", step, 0),
        *(item_name("msg", step, place) for place in range(1, 100)),
        merged_name("msg", step, 100, 1),
        merged_name("msg", step, 100, 12),
        item_name("msg", step, 100),
        item_name("msg", step, 1000),
    ]

    assert sorted(set(names), key=lambda name: order_of(place_digits(name))) == names


def test_a_name_is_packed_into_22_characters_and_back() -> None:
    name = new_name("resp")

    packed = pack_name(name)

    assert len(packed) == 22
    assert unpack_name("resp", packed) == name


def test_ids_can_be_made_right_before_another_one() -> None:
    earlier, one = new_id(), "0199ffff-ffff-7fff-bfff-ffffffffffff"

    before = new_ids_before(one, 3)

    assert [*sorted(before), one] == [*before, one]
    assert len({*before, one}) == 4
    assert all(is_id(each) for each in before)
    assert new_ids_before(earlier.replace("-", ""), 1)[0] < earlier


def test_ids_before_neighbours_of_one_millisecond_do_not_mix() -> None:
    first, second = derive_ids(new_id(), 2)

    before = new_ids_before(second, 20)

    assert [first, *before, second] == sorted([first, *before, second])
    assert new_ids_before(first, 20)[-1] < first < before[0]
