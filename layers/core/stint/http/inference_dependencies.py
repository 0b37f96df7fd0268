"""Dependencies of the routes of inference."""

from typing import Annotated

from fastapi import Depends, Request

from stint.apis.inference import InferenceServices
from stint.http.dependencies import find_services


async def inference_services_of(request: Request) -> InferenceServices:
    """Return the services of the caller's tenant. The first request of a process makes them."""
    services: InferenceServices = find_services(request).make_inference()
    return services


InferenceServicesDep = Annotated[InferenceServices, Depends(inference_services_of)]
