"""Routes of uploads."""

from fastapi import APIRouter, Request, Response

from stint.domain.openai.uploads import CompleteUpload, CreateUpload, Upload, UploadPart
from stint.http.json_responses import document
from stint.http.knowledge_dependencies import KnowledgeServicesDep
from stint.http.multipart import FormRoute, form_of
from stint.http.requests import StrictRoute
from stint.http.routes.files import BINARY, describe_form
from stint.http.scopes import OBJECT, requires

UPLOADS = "/v1/uploads"
UPLOAD = UPLOADS + "/{upload_id}"
PART_FORM = {"type": "object", "required": ["data"], "properties": {"data": BINARY}}

router = APIRouter(tags=["Files"], route_class=StrictRoute)
forms = APIRouter(tags=["Files"], route_class=FormRoute)


@router.post(UPLOADS, response_model=Upload)
@requires("use", repeated=OBJECT)
async def create_upload(body: CreateUpload, services: KnowledgeServicesDep) -> Response:
    """Create an upload of a file of up to 512 MB, which expires after an hour."""
    return document(await services.uploads.create(body))


@forms.post(UPLOAD + "/parts", response_model=UploadPart, openapi_extra=describe_form(PART_FORM))
@requires("use", repeated=OBJECT)
async def create_upload_part(upload_id: str, request: Request, services: KnowledgeServicesDep) -> Response:
    """Add a part of up to 4.4 MB."""
    form = await form_of(request, {"data"})
    return document(await services.uploads.add_part(upload_id, form.file("data").content))


@router.post(UPLOAD + "/complete", response_model=Upload)
@requires("use")
async def complete_upload(upload_id: str, body: CompleteUpload, services: KnowledgeServicesDep) -> Response:
    """Make a file of parts, in their order."""
    return document(await services.uploads.complete(upload_id, body))


@router.post(UPLOAD + "/cancel", response_model=Upload)
@requires("use")
async def cancel_upload(upload_id: str, services: KnowledgeServicesDep) -> Response:
    """Cancel an upload, and delete its parts."""
    return document(await services.uploads.cancel(upload_id))


router.routes.extend(forms.routes)
