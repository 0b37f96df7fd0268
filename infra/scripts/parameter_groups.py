"""The groups in which the console of CloudFormation shows the parameters of a template."""

from typing import Any

Template = dict[str, Any]

OWN_GROUP = "Options of this build"


def group_parameters(template: Template) -> None:
    """Remove from the groups what a parsed template does not have, and show its other parameters in another one."""
    interface = template["Metadata"]["AWS::CloudFormation::Interface"]
    groups, parameters = interface["ParameterGroups"], template["Parameters"]
    for group in groups:
        group["Parameters"] = [name for name in group["Parameters"] if name in parameters]
    grouped = {name for group in groups for name in group["Parameters"]}
    if added := [name for name in parameters if name not in grouped]:
        groups.append({"Label": {"default": OWN_GROUP}, "Parameters": added})
