"""Dependencies of the OpenAI API's routes, which only one function has."""

from typing import Annotated

from fastapi import Depends

from stint.apis.openai import OpenAIServices
from stint.http.dependencies import services_of

OpenAIServicesDep = Annotated[OpenAIServices, Depends(services_of)]
