"""The option AUTH of `make build`: who checks the callers of the API.

`authorizer` is the function in `template.yaml`. `iam` lets API Gateway check signatures of AWS credentials (SigV4), and
`none` lets everyone in.
"""

from typing import Any

from infra.scripts.protocol_options import name_no_resource

Template = dict[str, Any]

AUTHS = ("authorizer", "iam", "none")

OPEN = (
    "AUTH=none: everyone who knows the URL can use this API, read its data, and spend your money. "
    "Only build it for a private network or a test."
)

NOT_SIGNED = "The request is not signed with AWS credentials (SigV4). Sign it for the service execute-api."

IAM_ROLES = {
    "Type": "String",
    "Default": "",
    "Description": "Roles that may call the API, as JSON (docs/security.md). Empty - none.",
}

PARAMETERS = ("AuthKeys", "AuthorizerCacheSeconds", "AuthorizerReservedConcurrency")
RULES = ("SomeCredentialIsAccepted", "OidcIsComplete")
CONDITIONS = ("AcceptsKeys", "ReservesAuthorizer")
OUTPUTS = ("AuthorizerCacheSeconds",)
RESOURCES = ("Authorizer", "AuthorizerLayer", "AuthorizerLogs")
WORKER = "Worker"
"""The function that has no callers by IAM: it acts for those who sent its tasks."""


def use_auth(template: Template, auth: str) -> None:
    """Replace the authorizer of a parsed template by IAM, or by nothing."""
    for variables in variables_with_auth(template):
        variables["STINT_AUTH"] = auth
    if auth != "authorizer":
        remove_authorizer(template)
    api = template["Resources"]["Api"]["Properties"]
    if auth == "iam":
        api["Auth"] = {
            "DefaultAuthorizer": "AWS_IAM",
            "AddDefaultAuthorizerToCorsPreflight": False,
            "InvokeRole": "NONE",  # otherwise each caller would need the permission to invoke the functions
        }
        refuse_unsigned(api["GatewayResponses"])
        template["Parameters"]["IamRoles"] = IAM_ROLES
        for variables in variables_with_auth(template, but=WORKER):
            variables["STINT_IAM_ROLES"] = {"Ref": "IamRoles"}
    if auth == "none":
        del api["Auth"]
        for resource in template["Resources"].values():
            for event in resource.get("Properties", {}).get("Events", {}).values():
                event["Properties"].pop("Auth", None)  # of routes that need no credential


def variables_with_auth(template: Template, but: str = "") -> list[Template]:
    """Return the variables of the functions that know who checks their callers, `but` those of one."""
    resources = [each for name, each in template["Resources"].items() if name != but]
    environments = [each.get("Properties", {}).get("Environment", {}) for each in resources]
    variables: list[Template] = [each.get("Variables", {}) for each in environments]
    return [each for each in variables if "STINT_AUTH" in each]


def remove_authorizer(template: Template) -> None:
    """Remove the function with its parameters. The table of keys stays: it is data."""
    name_no_resource(template)
    parameters = template["Parameters"]
    for name in [*PARAMETERS, *(each for each in parameters if each.startswith("Oidc"))]:
        del parameters[name]
    removed = {"Rules": RULES, "Conditions": CONDITIONS, "Resources": RESOURCES, "Outputs": OUTPUTS}
    for section, names in removed.items():
        for name in names:
            del template[section][name]
    for variables in variables_with_auth(template):
        for name in [each for each in variables if each.startswith("STINT_OIDC_")]:
            del variables[name]
    resources = template["Resources"]
    del resources["Alarms"]["Properties"]["Parameters"]["AuthorizerName"]
    roles = resources["NoRequestsOfThisStack"]["Properties"]["Statement"]["Condition"]["ArnEquals"]
    roles["aws:PrincipalArn"] = [each for each in roles["aws:PrincipalArn"] if "AuthorizerRole" not in str(each)]


def refuse_unsigned(responses: Template) -> None:
    """Answer a request without a signature with 401, whose header names the scheme of signatures.

    Every path exists, so a missing signature is the only cause of MISSING_AUTHENTICATION_TOKEN.
    """
    missing, unauthorized = responses["MISSING_AUTHENTICATION_TOKEN"], responses["UNAUTHORIZED"]
    text: str = unauthorized["ResponseTemplates"]["application/json"]
    message = text.split('"message": "', 1)[1].split('"', 1)[0]
    missing["StatusCode"] = 401
    for refusal in (missing, *(each for each in responses.values() if each.get("StatusCode") == 401)):
        refusal["ResponseParameters"]["Headers"]["WWW-Authenticate"] = "'AWS4-HMAC-SHA256'"
    missing["ResponseTemplates"] = {"application/json": text.replace(message, NOT_SIGNED)}
