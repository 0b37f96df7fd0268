"""Names of entities, and those in queries and in models' answers."""

import pytest

from stint.domain.entities import entities_in_answer, entities_of, entity_of, phrases_of


@pytest.mark.parametrize(
    ("name", "entity"),
    [
        ("  Marie  CURIE ", "marie curie"),
        ("New York's", "new york s"),
        ("\uff30aris", "paris"),
        ("Straße", "strasse"),
        ("東京", "東京"),
        ("***", ""),
        ("\ufdfa" * 100, entity_of("\ufdfa" * 100)),
    ],
)
def test_names_are_compared_by_their_words(name: str, entity: str) -> None:
    assert entity_of(name) == entity
    assert len(entity) <= 100


def test_a_document_has_a_limited_number_of_different_entities() -> None:
    assert entities_of(["Paris", "PARIS", "...", "Lima"]) == ["paris", "lima"]
    assert len(entities_of(str(place) for place in range(100))) == 50


def test_a_query_has_phrases_of_up_to_four_words() -> None:
    assert phrases_of("Is it New York?") == [
        *("is it new york", "is it new", "it new york", "is it", "it new", "new york"),
        *("is", "it", "new", "york"),
    ]
    assert len(phrases_of(" ".join(map(str, range(1_000))))) == 40 + 39 + 38 + 37
    assert phrases_of("") == []


@pytest.mark.parametrize("answer", ["", "]", "[", "][", "{}", "[NaN]", '["\\ud800"]', "[" * 9_000 + "]" * 9_000])
def test_an_answer_without_a_list_of_names_has_no_entities(answer: str) -> None:
    assert entities_in_answer(answer) == []
