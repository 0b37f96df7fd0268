"""The parameter of pages of messages."""

from typing import Annotated

from fastapi import Query

FirstMessage = Annotated[int, Query(ge=0, le=1_000_000, description="The place of the first message of the page")]
