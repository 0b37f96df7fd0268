"""The embedders of the settings."""

from stint.bootstrap.adapters import Adapters
from stint.settings import Settings


def test_the_default_embedding_model_works_offline() -> None:
    embedders = Adapters(Settings()).embedders

    assert embedders.resolve(embedders.default_model).dimension == 384


def test_the_setting_selects_the_default_embedding_model() -> None:
    assert Adapters(Settings(embedding_model="hashed/words-64")).embedders.default_model == "hashed/words-64"
