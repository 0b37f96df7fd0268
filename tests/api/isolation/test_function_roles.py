"""The role of each function allows what its requests and tasks call, and no function calls what its role lacks."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from infra.local.engine import ROOT, Engine
from infra.local.intrinsics import Resolver, pseudo_parameters
from infra.local.translation import translate
from tests.api.isolation.belongings import create_file, post
from tests.api.isolation.iam import is_allowed
from tests.api.isolation.operations import deletions_last
from tests.api.isolation.recording import (
    BUCKET_ARN,
    QUEUE_ARN,
    TABLE_ARN,
    VECTOR_BUCKET_ARN,
    RecordedCall,
    recording,
)
from tests.api.isolation.tenants import Tenant, list_templates, make_tenant
from tests.api.isolation.warm_process import WarmProcess
from tests.clock import CLOCK
from tests.servers.s3_vectors import S3VectorsServer

Statements = list[dict[str, Any]]
FUNCTIONS = (
    "Agents",
    "Turns",
    "Responses",
    "Knowledge",
    "October",
    "OpenAIAgents",
    "Protocols",
    "Registry",
    "Admin",
    "Worker",
)
OUTPUTS = {
    "TableArn": TABLE_ARN,
    "KeysTableArn": "arn:aws:dynamodb:us-east-1:123456789012:table/keys",
    "BucketArn": BUCKET_ARN,
    "WorkQueueArn": QUEUE_ARN,
    "WorkerFailuresArn": f"{QUEUE_ARN}-failures",
    "VectorBucketArn": VECTOR_BUCKET_ARN,
}
RESOURCES = {"EventBus.Arn": "bus", "ScheduleRole.Arn": "arn:aws:iam::123456789012:role/schedules"}
DAY, DAYS = {"anchor": "last_active_at", "days": 1}, 2 * 86_400
BANK = {"identifier": "words", "type": "vector", "embedding_model": "hashed/words-384"}


@pytest.fixture(scope="module")
def roles() -> dict[str, Statements]:
    """The statements of each function's own policies, with the defaults of the template."""
    translated = translate(ROOT / "template.yaml", "us-east-1")
    defaults = {
        name: value.split(",") if parameter["Type"] == "CommaDelimitedList" else value
        for name, parameter in translated["Parameters"].items()
        if (value := parameter.get("Default")) is not None
    }
    attributes = {f"Data.Outputs.{name}": value for name, value in OUTPUTS.items()} | RESOURCES
    references = {**pseudo_parameters("us-east-1"), **defaults, "ScheduleGroup": "automations"}
    resolver = Resolver(references, attributes, translated["Conditions"])
    found = {}
    for function in FUNCTIONS:
        policies = translated["Resources"][f"{function}Role"]["Properties"]["Policies"]
        documents = [each["PolicyDocument"] for each in resolver.resolve(policies, function)]
        found[function] = [statement for document in documents for statement in document["Statement"]]
    return found


@pytest.fixture(scope="module")
def process(engine: Engine) -> Iterator[WarmProcess]:
    """A process whose vector stores are in S3 Vectors, and those of memory banks, too."""
    with pytest.MonkeyPatch.context() as patch, S3VectorsServer() as vectors:
        for name, value in (engine.environment() | vectors.environment()).items():
            patch.setenv(name, value)
        made = WarmProcess(engine, {"STINT_VECTOR_INDEX": "s3-vectors", "STINT_VECTOR_BUCKET": vectors.bucket})
        with made.served:
            yield made


@pytest.fixture(scope="module")
def calls(process: WarmProcess, mcp_server: str) -> list[RecordedCall]:
    """The calls of a tenant that sends each request of the document, and those requests that no document has."""
    with recording(process.settings) as recorded:
        for tenant in make_tenant(process, "frida", mcp_server):
            use_october(tenant)
            expired = create_store(tenant)
            for template in sorted(list_templates(), key=deletions_last):
                template.send(tenant.http, tenant.ids_for(template, {}))
            CLOCK.move(DAYS)
            search_expired(tenant, expired)
    return [each for each in recorded if each.function]


def create_store(tenant: Tenant) -> str:
    """Create a vector store that expires, with a file, and return its id."""
    store: str = post(tenant.http, "/v1/vector_stores", {"name": "short", "expires_after": DAY})["id"]
    post(tenant.http, f"/v1/vector_stores/{store}/files", {"file_id": create_file(tenant.http, b"Llamas hum.")})
    return store


def search_expired(tenant: Tenant, store: str) -> None:
    """Search a store that has expired, which notices it and leaves its contents to the worker."""
    search = {"tool_name": "knowledge_search", "kwargs": {"query": "llamas", "vector_db_ids": [store]}}
    answer = tenant.http.post("/v1/tool-runtime/invoke", json=search)
    assert "has expired" in answer.text, answer.text


def use_october(tenant: Tenant) -> None:
    """Use the API of October 2024, which the document does not describe."""

    def send(path: str, body: Mapping[str, Any]) -> Any:
        answer = tenant.http.post(path, json=body)
        assert answer.status_code == 200, (path, answer.text)
        return answer.json() if answer.headers["content-type"] == "application/json" else None

    config = {"model": "scripted/demo", "instructions": "Be brief.", "enable_session_persistence": True}
    agent = send("/agents/create", {"agent_config": config})
    session = agent | send("/agents/session/create", agent | {"session_name": "talk"})
    send("/agents/turn/create", session | {"messages": [{"role": "user", "content": "Hello"}], "stream": True})
    send("/agents/session/get", session)
    send("/memory_banks/register", {"memory_bank": BANK})
    document = {"document_id": "d", "content": "Llamas hum.", "mime_type": "text/plain", "metadata": {}}
    send("/memory/insert", {"bank_id": "words", "documents": [document]})
    send("/memory/update", {"bank_id": "words", "documents": [document]})
    send("/memory/query", {"bank_id": "words", "query": "llamas"})
    send("/memory/documents/delete", {"bank_id": "words", "document_ids": ["d"]})
    send("/memory/drop", {"bank_id": "words"})
    send("/agents/session/delete", session)
    send("/agents/delete", agent)


def test_requests_and_tasks_of_every_function_are_recorded(calls: list[RecordedCall]) -> None:
    assert {each.function for each in calls} == set(FUNCTIONS)
    services = {each.request.action.partition(":")[0] for each in calls}
    assert services == {"dynamodb", "s3", "s3vectors", "sqs"}
    assert ("Registry", "sqs:SendMessage") in {(each.function, each.request.action) for each in calls}


@pytest.mark.parametrize("function", FUNCTIONS)
def test_the_role_of_a_function_allows_its_calls(
    calls: list[RecordedCall], roles: Mapping[str, Statements], function: str
) -> None:
    own = [each.request for each in calls if each.function == function]

    assert {each.action for each in own if not is_allowed(roles[function], each, {})} == set()


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_grant_that_a_role_lacks_is_noticed(
    calls: list[RecordedCall], roles: Mapping[str, Statements], function: str
) -> None:
    own = [each.request for each in calls if each.function == function]
    for action in {each.action for each in own}:
        changed = [each | {"Action": [name for name in actions(each) if name != action]} for each in roles[function]]

        assert any(not is_allowed(changed, each, {}) for each in own), action


def actions(statement: Mapping[str, Any]) -> list[str]:
    return statement["Action"] if isinstance(statement["Action"], list) else [statement["Action"]]
