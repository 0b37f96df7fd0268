"""Bodies of the samples that `make invoke` stores."""

from infra.local.sample_bodies import LONG_MESSAGE

from stint.domain.token_estimates import LONGEST_TOKEN


def test_the_long_message_has_words_that_may_be_tokens() -> None:
    assert max(len(word) for word in LONG_MESSAGE["content"].split()) <= LONGEST_TOKEN
