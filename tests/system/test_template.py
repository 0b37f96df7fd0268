import json
import os
import re
from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml
from infra.local.engine import ROOT
from infra.local.errors import LocalCloudError
from infra.local.gateway_response import (
    FORBIDDEN,
    MALFORMED,
    NO_ROUTE,
    THROTTLED,
    TIMED_OUT,
    TOO_LARGE,
    Refusal,
    render,
)
from infra.local.intrinsics import Resolver
from infra.local.invocation import Retries
from infra.local.proxy_event import HttpRequest
from infra.local.routing import Router
from infra.local.sample_ids import FILE, UPLOAD
from infra.local.sources import QueueSource, queue_sources, retries, rule_sources
from infra.local.system import Function, Invoke, Mock, Route, System
from infra.local.translation import translate
from infra.scripts.lint_templates import CFN_LINT, lint
from samtranslator.yaml_helper import yaml_parse
from tests.route_rules import RULES
from tests.system.data_outputs import OUTPUTS

from stint.http.requests import LazyRoute
from stint.http.routes.inspection import addresses_of
from stint.october_2024.routes.parts import list_october_parts
from stint.settings import read_settings
from stint.store.keys import file_blobs, upload_blobs

TEMPLATE = ROOT / "template.yaml"
# A function's resource policy holds 20 KB; a statement of API Gateway takes up to 600 bytes.
PERMISSIONS = 30


@pytest.fixture(scope="module")
def translated() -> dict[str, Any]:
    return translate(TEMPLATE, "us-east-1")


@pytest.fixture
def system(translated: dict[str, Any]) -> System:
    return System(TEMPLATE, translated, outputs=OUTPUTS)


CONSOLE, PAGES = "stint-console", {"/", "/console", "/console/{proxy+}"}
"""The function of the console and its routes, which are no part of the API."""

HOME = (("GET", "/"), ("HEAD", "/"))
"""What another function serves in a build without the console."""

INDEXES = ("packed/", "vectors/")
"""Prefixes of what the indexes keep in the bucket."""


def of_type(translated: dict[str, Any], kind: str) -> dict[str, Any]:
    return {name: resource for name, resource in translated["Resources"].items() if resource["Type"] == kind}


def test_only_the_worker_can_read_files_of_office(translated: dict[str, Any]) -> None:
    functions = of_type(translated, "AWS::Lambda::Function")
    layers = {name: json.dumps(function["Properties"].get("Layers", [])) for name, function in functions.items()}

    assert [name for name, refs in layers.items() if "ExtractionLayer" in refs] == ["Worker"]


def test_only_functions_that_search_or_write_packed_stores_get_numpy(translated: dict[str, Any]) -> None:
    functions = of_type(translated, "AWS::Lambda::Function")
    layers = {name: function["Properties"]["Layers"] for name, function in functions.items()}
    with_numpy = {name: each for name, each in layers.items() if "PackedLayer" in json.dumps(each)}

    for each in with_numpy.values():
        (condition,) = [layer["Fn::If"] for layer in each if "Fn::If" in layer]
        assert (condition[0], condition[2]) == ("UsesPacked", {"Ref": "AWS::NoValue"})
    assert sorted(with_numpy) == [
        "Knowledge",
        "October",
        "OpenAIAgents",
        "Protocols",
        "Registry",
        "Responses",
        "Turns",
        "Worker",
    ]


@pytest.mark.parametrize(
    ("index", "second", "memory", "expected"),
    [
        ("s3-vectors", "", "176", 176),
        ("s3-vectors", "packed", "176", 512),
        ("s3-vectors", "", "256", 256),
        ("s3-vectors", "packed", "256", 512),
        ("packed", "", "128", 512),
        ("packed", "", "256", 512),
        ("packed", "s3-vectors", "512", 512),
        ("packed", "", "1769", 1769),
    ],
)
def test_a_function_that_searches_packed_stores_has_512_mb_or_more(
    translated: dict[str, Any], index: str, second: str, memory: str, expected: int
) -> None:
    parameters = {"VectorIndex": index, "SecondVectorIndex": second, "StreamMemorySize": memory}
    system = System(TEMPLATE, translated, outputs=OUTPUTS, parameters=parameters)
    functions = {function.name.removeprefix("stint-"): function for function in system.functions}

    assert {
        functions[name].memory for name in ("turns", "responses", "knowledge", "october", "openai_agents", "protocols")
    } == {expected}
    assert functions["worker"].memory == 512
    assert functions["turns"].environment["STINT_VECTOR_INDEX"] == index
    assert functions["turns"].environment["STINT_SECOND_VECTOR_INDEX"] == second
    bucket = "vectors" if "s3-vectors" in (index, second) else ""
    assert functions["turns"].environment["STINT_VECTOR_BUCKET"] == bucket


def test_the_vector_bucket_is_created_for_one_of_the_two_indexes(translated: dict[str, Any]) -> None:
    data = yaml_parse((ROOT / "infra/aws/data.yaml").read_text())

    assert data["Conditions"]["UsesS3Vectors"] == {"Fn::Equals": [{"Ref": "VectorIndex"}, "s3-vectors"]}
    conditional = {**data["Resources"], **data["Outputs"]}
    assert {name for name, each in conditional.items() if each.get("Condition") == "UsesS3Vectors"} == {
        "VectorBucket",
        "VectorBucketArn",
        "VectorBucketName",
    }
    passed = translated["Resources"]["Data"]["Properties"]["Parameters"]["VectorIndex"]
    assert passed == {"Fn::If": ["UsesS3Vectors", "s3-vectors", "packed"]}
    assert translated["Parameters"]["VectorIndex"]["Default"] == "s3-vectors"


@pytest.mark.timeout(600)  # cfn-lint takes more than a minute of CPU time, and other tests run beside it
def test_cfn_lint_sees_the_translated_template(tmp_path: Path) -> None:
    require_cfn_lint()
    broken = tmp_path / "template.yaml"
    text = (ROOT / "template.yaml").read_text()
    api = "    Type: AWS::Serverless::Api\n"
    broken.write_text(text.replace(api, f"{api}    DependsOn: ApiLogRoleSetting\n", 1))

    done = lint(broken)

    assert "E3005" in done.stdout


def require_cfn_lint() -> None:
    """Skip without `make validate`, which installs it; fail where everything must be checked."""
    if not CFN_LINT.exists():
        assert os.environ.get("CI") != "true", "cfn-lint is not installed: run `make validate`"
        pytest.skip("cfn-lint is not installed: run `make validate`")


def test_concurrency_is_reserved_where_a_parameter_says_so(translated: dict[str, Any]) -> None:
    functions = of_type(translated, "AWS::Lambda::Function")
    assert len(functions) == 13
    for name, function in functions.items():
        parameter = f"{name}ReservedConcurrency"
        reserved = function["Properties"]["ReservedConcurrentExecutions"]
        assert reserved == {"Fn::If": [f"Reserves{name}", {"Ref": parameter}, {"Ref": "AWS::NoValue"}]}
        assert translated["Parameters"][parameter]["Default"] == ""
        assert translated["Conditions"][f"Reserves{name}"] == {"Fn::Not": [{"Fn::Equals": [{"Ref": parameter}, ""]}]}


def test_every_route_of_a_streaming_function_streams_and_outlives_it(system: System) -> None:
    streaming = {
        function.name: function for function in system.functions if "AWS_LAMBDA_EXEC_WRAPPER" in function.environment
    }
    invocations = [route.integration for route in system.routes if isinstance(route.integration, Invoke)]

    assert streaming
    for invocation in invocations:
        assert invocation.stream == (invocation.function in streaming)
        if invocation.stream:
            function = streaming[invocation.function]
            assert invocation.timeout >= function.timeout
            assert function.environment["STREAM_ROUTE_TIMEOUT_SECONDS"] == f"{invocation.timeout:.0f}"


def test_one_parameter_sets_both_time_outs_of_a_stream(translated: dict[str, Any]) -> None:
    system = System(TEMPLATE, translated, parameters={"StreamTimeoutSeconds": "120"}, outputs=OUTPUTS)

    streaming = [function for function in system.functions if "AWS_LAMBDA_EXEC_WRAPPER" in function.environment]
    routes = [route.integration for route in system.routes if isinstance(route.integration, Invoke)]
    streaming = [function for function in streaming if function.name != CONSOLE]
    assert {function.timeout for function in streaming} == {120}
    assert {each.timeout for each in routes if each.stream and each.function != CONSOLE} == {120}


def test_a_buffered_function_ends_before_its_route_does(system: System) -> None:
    timeouts = {function.name: function.timeout for function in system.functions}

    for route in system.routes:
        if isinstance(route.integration, Invoke) and not route.integration.stream:
            assert timeouts[route.integration.function] <= route.integration.timeout == 29


def test_the_api_is_regional(translated: dict[str, Any]) -> None:
    (api,) = of_type(translated, "AWS::ApiGateway::RestApi").values()

    assert api["Properties"]["EndpointConfiguration"]["Types"] == ["REGIONAL"]


def test_permissions_fit_into_a_resource_policy(translated: dict[str, Any]) -> None:
    permissions = of_type(translated, "AWS::Lambda::Permission").values()

    count = Counter(json.dumps(permission["Properties"]["FunctionName"]) for permission in permissions)
    assert max(count.values()) <= PERMISSIONS


def test_every_function_has_a_log_group_with_retention(translated: dict[str, Any]) -> None:
    groups = of_type(translated, "AWS::Logs::LogGroup")

    assert all("RetentionInDays" in group["Properties"] for group in groups.values())
    for function in of_type(translated, "AWS::Lambda::Function").values():
        assert function["Properties"]["LoggingConfig"]["LogGroup"]["Ref"] in groups


def test_functions_get_the_names_of_the_data_resources_that_they_use(system: System) -> None:
    functions = {function.logical_id: function.environment for function in system.functions}
    data = {name: each for name, each in functions.items() if "STINT_TABLE" in each}

    assert set(functions) - set(data) == {"Authorizer", "Console", "Sandbox"}
    for name, environment in data.items():
        assert (environment["STINT_TABLE"], environment["STINT_BUCKET"]) == ("table", "bucket")
        assert environment.get("STINT_QUEUE_URL") == (None if name == "Admin" else OUTPUTS["WorkQueueUrl"])
    buses = {name: each["STINT_EVENT_BUS"] for name, each in functions.items() if "STINT_EVENT_BUS" in each}
    assert buses == {"Responses": "stint", "Worker": "stint"}


def routes_of(function: str) -> list[LazyRoute]:
    """Return the routes of a function, by the modules that its app names."""
    text = (ROOT / "functions" / function / "app.py").read_text()
    names = re.findall(r'"(stint(?:\.\w+)*\.routes(?:\.\w+)?)"', text)
    for package, imported in re.findall(
        r"^from (stint\.(?:http|openai_agents)\.routes) import (.+)$", text, re.MULTILINE
    ):
        names += [f"{package}.{name}" for name in imported.split(", ")]
    parts = [import_module(name).router for name in names]
    parts += list_october_parts() if "list_october_parts()" in text else ()
    return [route for part in parts for route in part.routes if isinstance(route, LazyRoute)]


SERVED = [
    (method, address.replace(":path}", "+}"), f"stint-{path.parent.name}")
    for path in sorted((ROOT / "functions").glob("*/app.py"))
    for route in routes_of(path.parent.name)
    for address in addresses_of(route)
    for method in sorted(route.methods or ())
]
"""The method and the path of each route, and the function that serves it. Routes of OpenAI's API have two paths."""


def test_each_route_leads_to_the_function_that_serves_it(system: System) -> None:
    led = [(method, path, leads_to(system, method, path)) for method, path, _ in SERVED]

    assert {f"{method} {path}" for method, path, _ in SERVED} >= {route.replace(":path}", "+}") for route in RULES}
    assert [each for each in led if each not in SERVED] == [(*each, CONSOLE) for each in HOME]


def test_each_path_of_the_template_has_a_route(system: System) -> None:
    used = {find_route(system, method, path).path for method, path, _ in SERVED}

    assert {route.path for route in system.routes} == used | PAGES


def test_paths_without_variables_win_over_the_ids_of_agents(system: System) -> None:
    documented = json.loads((ROOT / "docs" / "openapi.json").read_text())["paths"]
    fixed = {path for _, path, function in SERVED if function == "stint-openai_agents"}
    variable = {route.path for route in system.routes if route.path.startswith("/v1/agents/{agent_id}")}

    led = {path: find_route(system, "GET", path).path for path in fixed}

    assert {path for path in documented if path.startswith("/v1/agents/sessions")} < fixed
    assert variable
    assert {path for path, route in led.items() if route in variable} == set()


def find_route(system: System, method: str, path: str) -> Route:
    """Return the route of the template for a path, with a text in place of each variable."""
    match = Router(system.routes).match(method, re.sub(r"{\w+(\+?)}", lambda found: "a/b" if found[1] else "a", path))
    assert match is not None
    return match.route


def leads_to(system: System, method: str, path: str) -> str:
    integration = find_route(system, method, path).integration
    assert isinstance(integration, Invoke)
    return integration.function


@pytest.mark.parametrize(
    ("method", "path", "function"),
    [
        ("PUT", "/v1/agents", "stint-agents"),
        ("POST", "/datasets/create", "stint-october"),
        ("GET", "/v1/agents/a/nothing", "stint-registry"),
        ("GET", "/nothing/at/all", "stint-registry"),
        ("POST", "/v1/assistants", "stint-registry"),
        ("POST", "/v1/threads/t/runs", "stint-registry"),
        ("POST", "/v1/moderations", "stint-registry"),
        ("POST", "/v1/openai/v1/moderations", "stint-responses"),
        ("POST", "/responses", "stint-registry"),
        ("POST", "/v1/v1/responses", "stint-registry"),
    ],
)
def test_paths_and_methods_without_a_route_lead_to_a_function(
    system: System, method: str, path: str, function: str
) -> None:
    match = Router(system.routes).match(method, path)

    assert match is not None
    assert isinstance(match.route.integration, Invoke)
    assert match.route.integration.function == function


@pytest.mark.parametrize(
    ("refusal", "status"),
    [(FORBIDDEN, 403), (NO_ROUTE, 404), (TOO_LARGE, 413), (THROTTLED, 429), (MALFORMED, 502), (TIMED_OUT, 504)],
)
def test_gateway_responses_have_the_error_body(system: System, refusal: Refusal, status: int) -> None:
    request = HttpRequest("GET", "/x", "", "", [], b"", "127.0.0.1", "localhost", 80)

    head, body = render(refusal, request, system.gateway_responses)

    document = json.loads(body)
    assert head.status == status
    assert set(document["error"]) == {"message", "type", "code", "param"}
    assert document["detail"] == document["error"]["message"]
    headers = dict(head.headers)
    assert ("Retry-After" in headers) == (status == 429)
    assert ("x-should-retry" in headers) == (status != 429)
    assert headers["Cache-Control"] == "no-store"
    assert headers["X-Content-Type-Options"] == "nosniff"


def test_cors_headers_exist_only_with_an_origin(translated: dict[str, Any]) -> None:
    closed = System(TEMPLATE, translated, outputs=OUTPUTS)
    opened = System(TEMPLATE, translated, outputs=OUTPUTS, parameters={"CorsOrigin": "https://a.example"})

    for system, origin in ((closed, None), (opened, "https://a.example")):
        preflights = [route.integration for route in system.routes if isinstance(route.integration, Mock)]
        assert {preflight.headers.get("Access-Control-Allow-Origin") for preflight in preflights} == {origin}
        responses = system.gateway_responses.values()
        assert {response.headers.get("Access-Control-Allow-Origin") for response in responses} == {origin}


def test_the_data_outlives_the_stack() -> None:
    resources = data_resources()

    for name in ("Table", "Bucket"):
        assert resources[name]["DeletionPolicy"] == resources[name]["UpdateReplacePolicy"] == "Retain"


def test_old_versions_of_indexes_which_can_be_made_again_stay_for_a_day() -> None:
    rules = data_resources()["Bucket"]["Properties"]["LifecycleConfiguration"]["Rules"]
    shorter = {rule["Prefix"]: rule["NoncurrentVersionExpiration"] for rule in rules if rule.get("Prefix") in INDEXES}
    assert shorter == {prefix: {"NoncurrentDays": 1} for prefix in INDEXES}


def test_deleted_blobs_stay_as_long_as_the_table_can_be_restored() -> None:
    """Point-in-time recovery of DynamoDB goes back 35 days."""
    resources = data_resources()
    bucket = resources["Bucket"]["Properties"]
    rules = [rule for rule in bucket["LifecycleConfiguration"]["Rules"] if "NoncurrentVersionExpiration" in rule]
    (rule,) = [rule for rule in rules if rule.get("Prefix") not in INDEXES]

    assert resources["Table"]["Properties"]["PointInTimeRecoverySpecification"]["PointInTimeRecoveryEnabled"]
    assert bucket["VersioningConfiguration"] == {"Status": "Enabled"}
    assert rule["NoncurrentVersionExpiration"] == {"NoncurrentDays": 35}
    assert "Prefix" not in rule


def test_contents_of_files_that_expire_outlive_them_and_not_for_long() -> None:
    """A file expires within 30 days, and its parts are written up to an hour before it."""
    rules = data_resources()["Bucket"]["Properties"]["LifecycleConfiguration"]["Rules"]
    (rule,) = [rule for rule in rules if rule.get("Prefix") == "expiring/"]

    assert rule == {"Id": "expire-files", "Status": "Enabled", "Prefix": "expiring/", "ExpirationInDays": 31}
    prefixes = [file_blobs("t", FILE, expires=True), upload_blobs("t", UPLOAD, expires=True)]
    assert all(prefix.startswith("expiring/") for prefix in prefixes)


@pytest.mark.parametrize(
    ("parameters", "days"),
    [({}, "30"), ({"SessionExpiryDays": "7"}, "7"), ({"SessionExpiryDays": "7", "SessionBodyDays": "30"}, "30")],
)
def test_bodies_of_sessions_stay_as_long_as_the_operator_says(
    translated: dict[str, Any], parameters: dict[str, str], days: str
) -> None:
    defaults = {name: str(parameter.get("Default")) for name, parameter in translated["Parameters"].items()}
    resolver = Resolver(defaults | parameters, {}, translated["Conditions"])
    given = translated["Resources"]["Data"]["Properties"]["Parameters"]["SessionExpiryDays"]
    rules = data_resources()["Bucket"]["Properties"]["LifecycleConfiguration"]["Rules"]
    (rule,) = [rule for rule in rules if rule.get("Prefix") == "ephemeral/"]

    assert resolver.resolve(given, "Data") == days
    assert rule["ExpirationInDays"] == "Ref SessionExpiryDays"


def test_only_forms_are_binary(system: System) -> None:
    assert system.binary_media_types == ("multipart/form-data",)


def test_each_function_has_alarms() -> None:
    functions = {path.name for path in (ROOT / "functions").iterdir() if (path / "app.py").exists()}
    text = (ROOT / "infra" / "aws" / "alarms.yaml").read_text()

    watched = {
        name: set(re.findall(rf"Id: (\w+)\n(?:.*\n){{2}}.*MetricName: {name}, Dim.*FunctionName", text))
        for name in ("Errors", "Throttles", "Duration")
    }

    assert watched == {
        "Errors": functions - {"authorizer", "console"},  # an alarm has ten metrics at most; the console has no data
        "Throttles": functions - {"console"},
        "Duration": functions - {"authorizer", "console"},  # API Gateway answers with a 500, which ApiErrors counts
    }


def test_the_documentation_counts_what_the_alarms_cost() -> None:
    text = (ROOT / "infra" / "aws" / "alarms.yaml").read_text()

    alarms, metrics = text.count("Type: AWS::CloudWatch::Alarm"), text.count("MetricStat:")
    assert (alarms, metrics) == (13, 56)
    assert "13 alarms over 56 metrics" in (ROOT / "docs" / "production.md").read_text()


def data_resources() -> dict[str, Any]:
    """The resources of `infra/aws/data.yaml`, with the short tags of CloudFormation as text."""

    class Loader(yaml.SafeLoader):
        """Reads `!Ref Name` as `Ref Name`."""

    Loader.add_multi_constructor("!", lambda loader, suffix, node: f"{suffix} {node.value}")
    resources: dict[str, Any] = yaml.load((ROOT / "infra" / "aws" / "data.yaml").read_text(), Loader)["Resources"]
    return resources


def test_a_message_comes_back_when_the_worker_cannot_have_it_any_more(translated: dict[str, Any]) -> None:
    """Lambda refuses a queue whose visibility time-out is shorter than the function's time-out."""
    queue = data_resources()["WorkQueue"]["Properties"]
    worker = translated["Resources"]["Worker"]["Properties"]
    given = translated["Resources"]["Data"]["Properties"]["Parameters"]

    assert queue["VisibilityTimeout"] == "Ref WorkerTimeoutSeconds"
    assert worker["Timeout"] == given["WorkerTimeoutSeconds"] == {"Ref": "WorkerTimeoutSeconds"}
    assert queue["RedrivePolicy"]["maxReceiveCount"] == 3
    assert data_resources()["WorkDeadLetters"]["Properties"]["MessageRetentionPeriod"] == 14 * 24 * 3600


def test_the_worker_gets_messages_one_by_one_and_events_of_two_buses(system: System) -> None:
    (source,) = queue_sources(system)
    inbox, rule = sorted(rule_sources(system), key=lambda each: each.bus)

    assert source == QueueSource("WorkerWork", "stint-worker", OUTPUTS["WorkQueueArn"], 1, 20, partial=True)
    assert rule.function == "stint-worker"
    assert rule.bus == "stint"
    assert set(rule.shape) == {"InputTransformer"}
    assert rule.pattern == {"detail-type": ["Stint Turn Requested", "Stint Response Requested"]}
    assert (inbox.function, inbox.bus, set(inbox.shape)) == ("stint-worker", "default", {"InputTransformer"})
    assert inbox.pattern["detail"]["bucket"] == {"name": [OUTPUTS["BucketName"]]}
    assert retries(system) == {"stint-worker": Retries(2, OUTPUTS["WorkerFailuresArn"])}


def test_a_deployed_stack_has_a_model_of_bedrock_and_scripted_ones_only_on_request(translated: dict[str, Any]) -> None:
    asked = System(TEMPLATE, translated, parameters={"ScriptedModels": "true"}, outputs=OUTPUTS)
    deployed = System(TEMPLATE, translated, outputs=OUTPUTS)

    for function in with_models(deployed):
        settings = read_settings(function.environment)
        assert not settings.scripted_models
        assert settings.model_ids == ["bedrock/global.amazon.nova-2-lite-v1:0"]
    assert all(read_settings(each.environment).scripted_models for each in with_models(asked))


def with_models(system: System) -> list[Function]:
    """Return the functions that know the models."""
    found = [each for each in system.functions if "STINT_SCRIPTED_MODELS" in each.environment]
    assert len(found) == 9
    return found


def test_a_stack_without_scripted_models_cannot_have_one_as_default(translated: dict[str, Any]) -> None:
    rule = translated["Rules"]["DefaultModelIsThere"]

    assert rule["RuleCondition"] == {"Fn::Equals": [{"Ref": "ScriptedModels"}, "false"]}
    (assertion,) = rule["Assertions"]
    assert assertion["Assert"] == {"Fn::Not": [{"Fn::Equals": [{"Ref": "DefaultModel"}, "scripted/demo"]}]}


def test_128_mb_need_small_requests_and_documents(translated: dict[str, Any]) -> None:
    rule = translated["Rules"]["SmallRequestsInSmallMemory"]
    functions = of_type(translated, "AWS::Lambda::Function")

    assert rule["RuleCondition"] == {"Fn::Equals": [{"Ref": "StreamMemorySize"}, "128"]}
    (assertion,) = rule["Assertions"]
    small = [str(number) for number in range(100_000, 1_000_001, 100_000)]
    assert assertion["Assert"] == {
        "Fn::And": [{"Fn::Contains": [small, {"Ref": name}]} for name in ("MaxRequestBytes", "MaxFetchedBytes")]
    }
    for name in ("Turns", "Responses", "Knowledge"):
        memory = functions[name]["Properties"]["MemorySize"]
        assert memory == {"Fn::If": ["PackedInSmallMemory", 512, {"Ref": "StreamMemorySize"}]}
        variables = functions[name]["Properties"]["Environment"]["Variables"]
        assert variables["STINT_MAX_REQUEST_BYTES"] == {"Ref": "MaxRequestBytes"}
        assert variables["STINT_MAX_FETCHED_BYTES"] == {"Ref": "MaxFetchedBytes"}


def test_a_source_that_the_local_cloud_cannot_serve_is_named(translated: dict[str, Any]) -> None:
    mapping = translated["Resources"]["WorkerWork"]
    filtered = mapping | {"Properties": mapping["Properties"] | {"FilterCriteria": {}}}
    resources = translated["Resources"] | {"WorkerWork": filtered}

    with pytest.raises(LocalCloudError, match="WorkerWork: the local cloud does not support FilterCriteria"):
        queue_sources(System(TEMPLATE, translated | {"Resources": resources}, outputs=OUTPUTS))


def test_a_value_that_is_not_known_is_named_with_its_place() -> None:
    resolver = Resolver({}, {}, {})

    with pytest.raises(LocalCloudError, match=r"Turns\.Environment\.X\.a\[0\].*Fn::ImportValue"):
        resolver.resolve({"a": [{"Fn::ImportValue": "x"}]}, "Turns.Environment.X")
    with pytest.raises(LocalCloudError, match=r"here.*Ref Nothing"):
        resolver.resolve({"Fn::Sub": "a-${Nothing}"}, "here")
    with pytest.raises(LocalCloudError, match=r"here.*Fn::GetAtt Table\.Arn"):
        resolver.resolve({"Fn::GetAtt": ["Table", "Arn"]}, "here")


def test_a_template_that_is_not_valid_is_refused_in_the_translators_words(tmp_path: Path) -> None:
    template = tmp_path / "template.yaml"
    template.write_text("Resources:\n  F:\n    Type: AWS::Serverless::Function\n    Properties: {CodeUri: x}\n")

    with pytest.raises(LocalCloudError, match=r"\[F\]"):
        translate(template, "us-east-1")


def test_tenants_share_no_execution_environment_for_code(translated: dict[str, Any]) -> None:
    functions = of_type(translated, "AWS::Lambda::Function")

    isolated = {name: each["Properties"].get("TenancyConfig") for name, each in functions.items()}
    assert {name: each for name, each in isolated.items() if each} == {"Sandbox": {"TenantIsolationMode": "PER_TENANT"}}
