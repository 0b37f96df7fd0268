"""The option ROLLOUT of `make build`: how requests move to new versions of the functions.

With `all`, a deployment replaces the functions. With `canary`, CodeDeploy moves a part of the requests first, and back
if an alarm of `infra/aws/canary.yaml` is raised meanwhile.
"""

from infra.scripts.published_versions import Template, publish_functions, versioned_functions

ROLLOUTS = ("all", "canary")

TYPE = "Canary10Percent5Minutes"
PARAMETER: Template = {
    "Type": "String",
    "Default": "true",
    "AllowedValues": ["false", "true"],
    "Description": "Alarms move requests back during a deployment. false - for a correction while an alarm is raised.",
}
UNWATCHED = ("Authorizer", "Console")
"""Invocations of the first end in an error to refuse a credential, and no request of the API needs the second."""


def use_rollout(template: Template, rollout: str) -> None:
    """Publish each function as a version, to which CodeDeploy moves the requests."""
    if rollout != "canary":
        return
    template["Parameters"]["CanaryAlarms"] = PARAMETER
    template["Conditions"]["HasCanaryAlarms"] = {"Fn::Equals": [{"Ref": "CanaryAlarms"}, "true"]}
    publish_functions(template)
    functions = versioned_functions(template)
    versions = {f"{name}Version": version_of(name) for name in functions if name not in UNWATCHED}
    template["Resources"]["Canary"] = {
        "Type": "AWS::CloudFormation::Stack",
        "Condition": "HasCanaryAlarms",
        "Metadata": {"cfn-lint": {"config": {"ignore_checks": ["W3002"]}}},
        "Properties": {
            "TemplateURL": "infra/aws/canary.yaml",
            "Parameters": {"ApiName": {"Ref": "AWS::StackName"}, "StageName": {"Ref": "StageName"}} | versions,
        },
    }
    names = [{"Fn::GetAtt": ["Canary", f"Outputs.{alarm}"]} for alarm in ("VersionErrors", "ApiErrorRate")]
    alarms = {"Fn::If": ["HasCanaryAlarms", names, [{"Ref": "AWS::NoValue"}]]}
    for function in functions.values():
        function["Properties"]["DeploymentPreference"] = {"Type": TYPE, "Alarms": alarms}


def version_of(name: str) -> Template:
    """Return the number of the version that SAM publishes."""
    return {"Fn::GetAtt": [f"{name}.Version", "Version"]}
