"""Reader of the translated template: functions, layers, routes, gateway responses.

It reads the output of AWS's own translator, not SAM, so that defaults and generated resources are those of a
deployment. Routes are in the OpenAPI body of the API. Names are resolved in two steps, since the ARN of a function
contains its name, and names may refer to parameters: first with parameters only, then with the ARNs (`_resolver`).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from infra.local.errors import LocalCloudError
from infra.local.intrinsics import ACCOUNT, NO_VALUE, Resolver, pseudo_parameters
from infra.local.security_schemes import Authorizer, SecuritySchemes
from infra.local.translation import source_folder

ANY = "ANY"
# API Gateway's default, https://docs.aws.amazon.com/apigateway/latest/developerguide/limits.html
BUFFERED_TIMEOUT = 29.0
_ANY_METHOD = "x-amazon-apigateway-any-method"
_INTEGRATION = "x-amazon-apigateway-integration"
_URI = re.compile(r":function:(?P<name>[^:/]+)/(?P<operation>invocations|response-streaming-invocations)$")


@dataclass(frozen=True)
class Function:
    """A function of the template."""

    logical_id: str
    """The name of the resource in the template."""
    name: str
    handler: str
    code: Path
    layers: tuple[Path, ...]
    """The content folders of its layers."""
    environment: Mapping[str, str]
    timeout: float
    """Seconds."""
    memory: int
    """MB."""


@dataclass(frozen=True)
class Invoke:
    """A route's integration that invokes a function; `timeout` is in seconds."""

    function: str
    stream: bool
    timeout: float


@dataclass(frozen=True)
class Mock:
    """A mock integration of a route, with a fixed response."""

    status: int
    headers: Mapping[str, str]
    body: str


@dataclass(frozen=True)
class Route:
    """A method (or ANY) of an API Gateway resource path."""

    method: str
    path: str
    integration: Invoke | Mock
    authorizer: Authorizer | None = None


@dataclass(frozen=True)
class GatewayResponse:
    """A customized gateway response; `template` is the body with $context variables."""

    status: int | None
    headers: Mapping[str, str]
    template: str


def parameter_behind(translated: dict[str, Any], variable: str) -> str | None:
    """Return the template parameter that alone sets this environment variable of a function."""
    for resource in translated["Resources"].values():
        variables = resource.get("Properties", {}).get("Environment", {}).get("Variables", {})
        reference = variables.get(variable)
        if isinstance(reference, dict) and reference.get("Ref") in translated.get("Parameters", {}):
            return str(reference["Ref"])
    return None


class System:
    """The resources of a translated SAM template.

    `parameters` override the template's defaults, `outputs` are those of the data stack. Raises LocalCloudError for a
    value that the local cloud needs but cannot resolve.
    """

    def __init__(
        self,
        template: Path,
        translated: dict[str, Any],
        *,
        region: str = "us-east-1",
        parameters: Mapping[str, str] | None = None,
        outputs: Mapping[str, str] | None = None,
    ) -> None:
        self.template = template
        self.region = region
        self.translated = translated
        self._resources: dict[str, Any] = translated["Resources"]
        self._parameters = dict(parameters or {})
        self._outputs = {f"Data.Outputs.{name}": value for name, value in (outputs or {}).items()}

    @cached_property
    def functions(self) -> tuple[Function, ...]:
        return tuple(self._function(logical_id) for logical_id in self._of_type("AWS::Lambda::Function"))

    def resolved(self, kind: str) -> dict[str, dict[str, Any]]:
        """Return the properties of all resources of a type, with intrinsic functions evaluated."""
        properties = {name: self._resources[name]["Properties"] for name in self._of_type(kind)}
        return {name: self._resolver.resolve(value, name) for name, value in properties.items()}

    @cached_property
    def routes(self) -> tuple[Route, ...]:
        schemes = SecuritySchemes(self._body, self._resolver)
        return tuple(
            Route(
                method=ANY if method == _ANY_METHOD else method.upper(),
                path=path,
                integration=self._integration(operation[_INTEGRATION], f"{self._api}: {method} {path}"),
                authorizer=schemes.authorizer_of(operation, f"{self._api}: {method} {path}"),
            )
            for path, operations in self._body["paths"].items()
            for method, operation in operations.items()
        )

    @cached_property
    def gateway_responses(self) -> dict[str, GatewayResponse]:
        responses = self._body.get("x-amazon-apigateway-gateway-responses", {})
        return {kind: self._gateway_response(kind, response) for kind, response in responses.items()}

    @cached_property
    def binary_media_types(self) -> tuple[str, ...]:
        return tuple(self._body.get("x-amazon-apigateway-binary-media-types", ()))

    @cached_property
    def stage(self) -> str:
        (stage,) = self._of_type("AWS::ApiGateway::Stage")
        return self._resolver.text(self._resources[stage]["Properties"]["StageName"], f"{stage}.StageName")

    def _of_type(self, kind: str) -> list[str]:
        return [name for name, resource in self._resources.items() if resource["Type"] == kind]

    @cached_property
    def _api(self) -> str:
        (api,) = self._of_type("AWS::ApiGateway::RestApi")
        return api

    @cached_property
    def _body(self) -> dict[str, Any]:
        body: dict[str, Any] = self._resources[self._api]["Properties"]["Body"]
        return body

    @cached_property
    def _resolver(self) -> Resolver:
        references = pseudo_parameters(self.region)
        for name, parameter in self.translated.get("Parameters", {}).items():
            value = self._parameters.get(name, parameter.get("Default"))
            references[name] = value.split(",") if parameter.get("Type") == "CommaDelimitedList" else value
        for name in self._of_type("AWS::Lambda::LayerVersion"):
            references[name] = str(source_folder(self.template, self._resources[name]["Properties"]["Content"]))
        names = Resolver(references, {}, self.translated.get("Conditions", {}))
        attributes = dict(self._outputs)
        for logical_id in self._of_type("AWS::Lambda::Function"):
            name = self._function_name(logical_id, names)
            references[logical_id] = name
            attributes[f"{logical_id}.Arn"] = f"arn:aws:lambda:{self.region}:{ACCOUNT}:function:{name}"
        for logical_id in self._of_type("AWS::Events::EventBus"):
            bus = names.text(self._resources[logical_id]["Properties"]["Name"], f"{logical_id}.Name")
            references[logical_id] = bus
            attributes[f"{logical_id}.Arn"] = f"arn:aws:events:{self.region}:{ACCOUNT}:event-bus/{bus}"
        for logical_id in self._of_type("AWS::Scheduler::ScheduleGroup"):
            group = names.text(self._resources[logical_id]["Properties"]["Name"], f"{logical_id}.Name")
            references[logical_id] = group
            attributes[f"{logical_id}.Arn"] = f"arn:aws:scheduler:{self.region}:{ACCOUNT}:schedule-group/{group}"
        for logical_id in self._of_type("AWS::IAM::Role"):
            attributes[f"{logical_id}.Arn"] = f"arn:aws:iam::{ACCOUNT}:role/{logical_id}"
        return Resolver(references, attributes, self.translated.get("Conditions", {}))

    def _function_name(self, logical_id: str, resolver: Resolver) -> str:
        named = self._resources[logical_id]["Properties"].get("FunctionName", logical_id)
        return resolver.text(named, f"{logical_id}.FunctionName")

    def _function(self, logical_id: str) -> Function:
        properties = self._resources[logical_id]["Properties"]
        text = self._resolver.text
        variables = properties.get("Environment", {}).get("Variables", {})
        return Function(
            logical_id=logical_id,
            name=self._function_name(logical_id, self._resolver),
            handler=text(properties["Handler"], f"{logical_id}.Handler"),
            code=source_folder(self.template, properties["Code"]),
            layers=tuple(map(Path, self._resolver.resolve(properties.get("Layers", []), f"{logical_id}.Layers"))),
            environment={name: text(value, f"{logical_id}.Environment.{name}") for name, value in variables.items()},
            timeout=float(text(properties.get("Timeout", 3), f"{logical_id}.Timeout")),
            memory=int(text(properties.get("MemorySize", 128), f"{logical_id}.MemorySize")),
        )

    def _integration(self, integration: dict[str, Any], where: str) -> Invoke | Mock:
        if integration["type"] == "mock":
            return self._mock(integration, where)
        if integration["type"] != "aws_proxy":
            raise LocalCloudError(f"{where}: the local cloud has no integration {integration['type']}")
        uri = self._resolver.text(integration["uri"], f"{where}: uri")
        target = _URI.search(uri)
        if target is None:
            raise LocalCloudError(f"{where}: {uri} is not the invocation of a function")
        timeout = integration.get("timeoutInMillis")
        return Invoke(
            function=target["name"],
            stream=integration.get("responseTransferMode") == "STREAM",
            timeout=BUFFERED_TIMEOUT if timeout is None else int(self._resolver.text(timeout, where)) / 1000,
        )

    def _mock(self, integration: dict[str, Any], where: str) -> Mock:
        response = integration["responses"]["default"]
        return Mock(
            status=int(response["statusCode"]),
            headers=self._headers(response["responseParameters"], "method.response.header.", where),
            body=response.get("responseTemplates", {}).get("application/json", ""),
        )

    def _gateway_response(self, kind: str, response: dict[str, Any]) -> GatewayResponse:
        status = response.get("statusCode")
        return GatewayResponse(
            status=None if status is None else int(status),
            headers=self._headers(response.get("responseParameters", {}), "gatewayresponse.header.", kind),
            template=response.get("responseTemplates", {}).get("application/json", ""),
        )

    def _headers(self, parameters: dict[str, Any], prefix: str, where: str) -> dict[str, str]:
        """Return static header values; API Gateway has them in single quotes."""
        headers = {}
        for parameter, unresolved in parameters.items():
            value = self._resolver.resolve(unresolved, f"{where}: {parameter}")
            if value is NO_VALUE:
                continue
            if not (isinstance(value, str) and value[:1] == value[-1:] == "'"):
                raise LocalCloudError(f"{where}: {parameter} must be a value in single quotes, not {value}")
            headers[parameter.removeprefix(prefix)] = value[1:-1]
        return headers
