"""Versions of the functions of a parsed template, and the alias by which routes and event sources call them."""

from typing import Any

Template = dict[str, Any]

ALIAS = "live"


def publish_functions(template: Template) -> None:
    """Publish each function, and make routes, event sources and API Gateway's authorizer call its alias."""
    published = versioned_functions(template)
    for function in published.values():
        publish(function)
    for source in resources_of(template, "AWS::Lambda::EventSourceMapping").values():
        if (name := source["Properties"]["FunctionName"]["Ref"]) in published:
            source["Properties"]["FunctionName"] = {"Ref": f"{name}.Alias"}
    authorizers = template["Resources"]["Api"]["Properties"].get("Auth", {}).get("Authorizers", {})
    for authorizer in authorizers.values():
        authorizer["FunctionArn"] = {"Ref": "Authorizer.Alias"}
    publish_layers(template)


def versioned_functions(template: Template) -> dict[str, Template]:
    """Return the functions that are called by an alias.

    Those with environments per tenant are called by their name: Lambda takes no snapshots of them.
    """
    functions = resources_of(template, "AWS::Serverless::Function")
    return {name: each for name, each in functions.items() if "TenancyConfig" not in each["Properties"]}


def publish(function: Template) -> None:
    function["Properties"] |= {"AutoPublishAlias": ALIAS, "AutoPublishAliasAllProperties": True}


def publish_layers(template: Template) -> None:
    """Make a new version of a layer publish the functions again."""
    for layer in resources_of(template, "AWS::Serverless::LayerVersion").values():
        layer["Properties"]["PublishLambdaVersion"] = True


def find_functions(template: Template) -> dict[str, str]:
    """Return the resource of each function by the name of its folder, which is also the end of its own name."""
    functions = resources_of(template, "AWS::Serverless::Function") | resources_of(template, "AWS::Lambda::Function")
    prefix = "${AWS::StackName}-"
    return {
        each["Properties"]["FunctionName"]["Fn::Sub"].removeprefix(prefix): name for name, each in functions.items()
    }


def resources_of(template: Template, kind: str) -> dict[str, Template]:
    return {name: resource for name, resource in template["Resources"].items() if resource["Type"] == kind}
