"""The option CONSOLE of `make build`: whether the stack has the console, a web page for people.

With `off`, its function and routes do not exist, and `/` shows where clients connect.
"""

from collections.abc import Mapping
from typing import Any

Template = dict[str, Any]

CONSOLES = ("on", "off")

FUNCTION = "Console"
SIGN_IN: Mapping[str, str | None] = {
    "STINT_AUTH_KEYS": None,
    "STINT_OIDC_ISSUER": None,
    "STINT_OIDC_AUDIENCE": None,
    "STINT_CONSOLE_CLIENT_ID": "ConsoleClientId",
    "STINT_CONSOLE_SCOPES": "ConsoleScopes",
    "STINT_CONSOLE_TOKEN_ORIGIN": "ConsoleTokenOrigin",
}
"""Variables about sign-in, and the parameters that only the console has."""
OF_SIGN_IN = tuple(filter(None, SIGN_IN.values()))
PARAMETERS = (*OF_SIGN_IN, "ConsoleRateLimit", "ConsoleBurstLimit", "ConsoleReservedConcurrency")
RESOURCES = ("Console", "ConsoleLogs")
HOME: Template = {"Type": "Api", "Properties": {"RestApiId": {"Ref": "Api"}, "Method": "ANY", "Path": "/"}}
"""The route of `/`, which the console has otherwise."""


def use_console(template: Template, console: str, auth: str) -> None:
    """Remove the console from a parsed template, and the settings that its builds do not have.

    An API with AUTH=iam has none, because a browser cannot sign.
    """
    if console == "off" or auth == "iam":
        remove_console(template)
    elif auth == "none":
        variables = template["Resources"][FUNCTION]["Properties"]["Environment"]["Variables"]
        for name in SIGN_IN:
            del variables[name]
        for name in OF_SIGN_IN:
            del template["Parameters"][name]
        for event in template["Resources"][FUNCTION]["Properties"]["Events"].values():
            del event["Properties"]["Auth"]


def remove_console(template: Template) -> None:
    resources = template["Resources"]
    for name in PARAMETERS:
        del template["Parameters"][name]
    del template["Conditions"][f"Reserves{FUNCTION}"]
    for name in RESOURCES:
        del resources[name]
    api = resources["Api"]["Properties"]
    api["MethodSettings"] = [each for each in api["MethodSettings"] if each["ResourcePath"] == "/*"]
    roles = resources["NoRequestsOfThisStack"]["Properties"]["Statement"]["Condition"]["ArnEquals"]
    roles["aws:PrincipalArn"] = [each for each in roles["aws:PrincipalArn"] if f"{FUNCTION}Role" not in str(each)]
    resources["Registry"]["Properties"]["Events"]["Home"] = HOME
