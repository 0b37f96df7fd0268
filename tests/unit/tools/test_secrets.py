from typing import Any

import pytest

from stint.domain.content import ImageContentItem, ImageSource, TextContentItem
from stint.tools.port import ToolOutcome
from stint.tools.secrets import secrets_of, strike, strike_outcome

URI = "https://tools.example/mcp"


@pytest.mark.parametrize(
    ("provider_data", "secrets"),
    [
        ({"mcp_headers": {URI: {"Authorization": "Bearer abcdefgh"}}}, {"Bearer abcdefgh", "abcdefgh"}),
        ({"mcp_headers": {URI: ["X-Key: ijklmnop"]}}, {"ijklmnop"}),
        ({"http_headers": {"https://x.example": {"X-Key": "ijklmnop", "Accept": "text/html, */*"}}}, {"ijklmnop"}),
        ({"tavily_search_api_key": "tvly-12345"}, {"tvly-12345"}),
        ({"mcp_headers": {URI: {"X-Tenant": "acme"}}}, set[str]()),
        ({"user": "somebody-long"}, set[str]()),
        ({"mcp_headers": "malformed", "http_headers": {"https://x.example": 5}}, set[str]()),
    ],
)
def test_credentials_are_what_is_named_so_and_headers_that_are_no_public_ones(
    provider_data: dict[str, Any], secrets: set[str]
) -> None:
    assert secrets_of(provider_data) == secrets


@pytest.mark.parametrize(
    ("text", "struck"),
    [
        ("you sent Bearer a/b c+defgh!", "you sent ***!"),
        ('{"key": "quote\\"quote"}', '{"key": "***"}'),
        ("https://x.example/?q=Bearer%20a%2Fb%20c%2Bdefgh", "https://x.example/?q=***"),
        ("nothing of the kind", "nothing of the kind"),
    ],
)
def test_secrets_are_struck_in_each_of_their_forms(text: str, struck: str) -> None:
    assert strike(text, {"Bearer a/b c+defgh", 'quote"quote'}) == struck


def test_every_text_of_an_outcome_is_struck_and_images_stay() -> None:
    image = ImageContentItem(image=ImageSource(data="abcdefgh"))
    metadata = {"structured_content": {"headers": [{"abcdefgh": "Bearer abcdefgh"}], "n": 1}}
    outcome = ToolOutcome([TextContentItem(text="sent abcdefgh"), image], metadata, error=True)

    struck = strike_outcome(outcome, {"abcdefgh"})

    assert struck.content == [TextContentItem(text="sent ***"), image]
    assert struck.metadata == {"structured_content": {"headers": [{"***": "Bearer ***"}], "n": 1}}
    assert struck.error
