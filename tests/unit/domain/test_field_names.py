from stint.domain.field_names import FieldNames
from stint.domain.schema import Schema


class Part(Schema):
    text: str = ""


class Whole(Schema):
    name: str
    parts: list[Part] = []
    only: Part | None = None


def test_objects_with_the_same_fields_share_the_set_of_their_names() -> None:
    names = FieldNames()
    raw = {"name": "a", "parts": [{"text": "b"}, {}], "only": {"text": "c"}}

    first, second = (names.share(Whole.model_validate(raw)) for _ in range(2))

    assert first == second == Whole.model_validate(raw)
    assert first.model_fields_set is second.model_fields_set
    assert first.model_fields_set == {"name", "parts", "only"}
    assert first.only is not None
    assert first.parts[0].model_fields_set is second.parts[0].model_fields_set is first.only.model_fields_set
    assert first.parts[1].model_fields_set == set()
