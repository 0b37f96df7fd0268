"""Routes of the registry group: webhook endpoints, as in OpenAI's API.

They need a scope of their own, also for reads: a URL may have a secret in it.
"""

from fastapi import APIRouter, Request, Response

from stint.domain.openai.lists import ListObject
from stint.domain.webhooks import (
    EVENT_TYPES,
    CreateWebhookEndpoint,
    DeletedWebhookEndpoint,
    RotateWebhookSecret,
    SendTestEvent,
    UpdateWebhookEndpoint,
    WebhookEndpoint,
    WebhookEndpointTestResult,
    WebhookEndpointWithSecret,
    WebhookEventTypeList,
)
from stint.http.deadline import deadline_of
from stint.http.dependencies import AgentsServicesDep
from stint.http.json_responses import document
from stint.http.list_params import Limit
from stint.http.requests import StrictRoute
from stint.http.scopes import OBJECT, requires

ENDPOINTS = "/v1/webhook_endpoints"
ENDPOINT = ENDPOINTS + "/{webhook_endpoint_id}"

router = APIRouter(tags=["Webhooks"], route_class=StrictRoute)


@router.post(ENDPOINTS, response_model=WebhookEndpointWithSecret)
@requires("webhooks:write", repeated=OBJECT, has_secret=True)
async def create_webhook_endpoint(body: CreateWebhookEndpoint, services: AgentsServicesDep) -> Response:
    """Create an endpoint that gets events. Only this response has its signing secret."""
    return document(await services.make_webhook_endpoints().create(body))


@router.get(ENDPOINTS, response_model=ListObject[WebhookEndpoint])
@requires("webhooks:write")
async def list_webhook_endpoints(services: AgentsServicesDep, limit: Limit, after: str | None = None) -> Response:
    """List webhook endpoints without their secrets, the newest first."""
    page = await services.make_webhook_endpoints().list(after, limit)
    return document(ListObject[WebhookEndpoint].of(page.data, page.has_more))


@router.get("/v1/webhook_event_types", response_model=WebhookEventTypeList)
@requires("webhooks:write")
async def list_webhook_event_types() -> Response:
    """List the types of events."""
    return document(WebhookEventTypeList(data=list(EVENT_TYPES)))


@router.get(ENDPOINT, response_model=WebhookEndpoint)
@requires("webhooks:write")
async def get_webhook_endpoint(webhook_endpoint_id: str, services: AgentsServicesDep) -> Response:
    """Read a webhook endpoint without its secret."""
    return document(await services.make_webhook_endpoints().get(webhook_endpoint_id))


@router.post(ENDPOINT, response_model=WebhookEndpoint)
@requires("webhooks:write")
async def update_webhook_endpoint(
    webhook_endpoint_id: str, body: UpdateWebhookEndpoint, services: AgentsServicesDep
) -> Response:
    """Change a webhook endpoint. A disabled one is enabled again, unless the body sets `status`."""
    return document(await services.make_webhook_endpoints().update(webhook_endpoint_id, body))


@router.delete(ENDPOINT, response_model=DeletedWebhookEndpoint)
@requires("webhooks:write")
async def delete_webhook_endpoint(webhook_endpoint_id: str, services: AgentsServicesDep) -> Response:
    """Delete a webhook endpoint. Events that wait for another attempt are dropped."""
    await services.make_webhook_endpoints().delete(webhook_endpoint_id)
    return document(DeletedWebhookEndpoint(id=webhook_endpoint_id))


@router.post(ENDPOINT + "/rotate_secret", response_model=WebhookEndpointWithSecret)
@requires("webhooks:write", has_secret=True)
async def rotate_webhook_secret(
    webhook_endpoint_id: str, services: AgentsServicesDep, body: RotateWebhookSecret | None = None
) -> Response:
    """Replace the signing secret of a webhook endpoint. Only this response has the new one."""
    keeps = body is not None and body.keep_old_secret_active_for_24_hours
    return document(await services.make_webhook_endpoints().rotate_secret(webhook_endpoint_id, keeps_previous=keeps))


@router.post(ENDPOINT + "/test", response_model=WebhookEndpointTestResult)
@requires("webhooks:write")
async def test_webhook_endpoint(
    webhook_endpoint_id: str, body: SendTestEvent, request: Request, services: AgentsServicesDep
) -> Response:
    """Send a sample event to a webhook endpoint, and return the status of its answer."""
    async with services.meters.request(acts=True, deadline=deadline_of(request)):
        return document(await services.make_webhook_endpoints().send_test(webhook_endpoint_id, body.event_type))
