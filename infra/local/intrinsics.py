"""CloudFormation's intrinsic functions that the translated template uses in those parts that the local cloud reads.

Values are resolved when a part is read, and not in the whole template: other parts refer to resources for which there
is no local value. Whatever cannot be resolved is an error with its place, never an empty text.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from infra.local.errors import LocalCloudError

NO_VALUE = object()
_VARIABLE = re.compile(r"\$\{(!?)([^}]+)\}")

ACCOUNT = "000000000000"
STACK = "stint"


def pseudo_parameters(region: str) -> dict[str, Any]:
    """Return the values of CloudFormation's pseudo parameters."""
    return {
        "AWS::AccountId": ACCOUNT,
        "AWS::NoValue": NO_VALUE,
        "AWS::Partition": "aws",
        "AWS::Region": region,
        "AWS::StackName": STACK,
        "AWS::StackId": f"arn:aws:cloudformation:{region}:{ACCOUNT}:stack/{STACK}/local",
        "AWS::URLSuffix": "amazonaws.com",
    }


class Resolver:
    """Evaluation of Ref, Fn::GetAtt, Fn::Sub, Fn::Join, Fn::Split, Fn::Select, Fn::If, and what conditions consist of.

    `references` are the values of Ref, `attributes` those of Fn::GetAtt as "Resource.Attribute". Raises
    LocalCloudError, with the name and the place, for a function or a reference that is unknown.
    """

    def __init__(
        self, references: Mapping[str, Any], attributes: Mapping[str, Any], conditions: Mapping[str, Any]
    ) -> None:
        self._references = references
        self._attributes = attributes
        self._conditions = conditions
        self._functions: dict[str, Callable[[Any, str], Any]] = {
            "Ref": self._ref,
            "Fn::GetAtt": self._get_att,
            "Fn::Sub": self._sub,
            "Fn::Join": self._join,
            "Fn::Split": self._split,
            "Fn::Select": self._select,
            "Fn::If": self._if,
            "Fn::Equals": self._equals,
            "Fn::Not": self._not,
            "Fn::And": self._and,
            "Fn::Or": self._or,
        }

    def resolve(self, value: Any, where: str) -> Any:
        """Return the value with all functions evaluated, without entries that become AWS::NoValue."""
        if isinstance(value, list):
            items = [self.resolve(item, f"{where}[{index}]") for index, item in enumerate(value)]
            return [item for item in items if item is not NO_VALUE]
        if not isinstance(value, dict):
            return value
        name = next(iter(value), "")
        if len(value) == 1 and (name == "Ref" or name.startswith("Fn::")):
            if name not in self._functions:
                raise LocalCloudError(f"{where}: the local cloud does not support {name}")
            return self._functions[name](value[name], where)
        entries = {key: self.resolve(entry, f"{where}.{key}") for key, entry in value.items()}
        return {key: entry for key, entry in entries.items() if entry is not NO_VALUE}

    def text(self, value: Any, where: str) -> str:
        """Return the value as CloudFormation writes it into a string property."""
        resolved = self.resolve(value, where)
        if isinstance(resolved, bool):
            return str(resolved).lower()
        if isinstance(resolved, str | int | float):
            return str(resolved)
        raise LocalCloudError(f"{where}: expected a string, found {value}")

    def _ref(self, name: str, where: str) -> Any:
        if name not in self._references:
            raise LocalCloudError(f"{where}: the local cloud has no value for Ref {name}")
        return self._references[name]

    def _get_att(self, path: Any, where: str) -> Any:
        name = path if isinstance(path, str) else ".".join(path)
        if name not in self._attributes:
            raise LocalCloudError(f"{where}: the local cloud has no value for Fn::GetAtt {name}")
        return self._attributes[name]

    def _sub(self, argument: Any, where: str) -> str:
        template, own = (argument, {}) if isinstance(argument, str) else argument

        def value_of(match: re.Match[str]) -> str:
            literal, name = match.groups()
            if literal:
                return f"${{{name}}}"
            if name in own:
                return self.text(own[name], f"{where}.{name}")
            return self.text({"Fn::GetAtt" if "." in name else "Ref": name}, where)

        return _VARIABLE.sub(value_of, template)

    def _join(self, argument: Any, where: str) -> str:
        delimiter, values = argument
        return str(delimiter).join(self.text(value, where) for value in self.resolve(values, where))

    def _split(self, argument: Any, where: str) -> list[str]:
        delimiter, text = argument
        return self.text(text, where).split(delimiter)

    def _select(self, argument: Any, where: str) -> Any:
        index, values = argument
        return self.resolve(values, where)[int(index)]

    def _if(self, argument: Any, where: str) -> Any:
        condition, then, otherwise = argument
        return self.resolve(then if self._holds({"Condition": condition}, where) else otherwise, where)

    def _holds(self, condition: Any, where: str) -> bool:
        """Return whether a condition holds: a function, or the name of another one."""
        if not isinstance(condition, dict) or list(condition) != ["Condition"]:
            return bool(self.resolve(condition, where))
        name = condition["Condition"]
        if name not in self._conditions:
            raise LocalCloudError(f"{where}: there is no condition {name}")
        return self._holds(self._conditions[name], f"Conditions.{name}")

    def _equals(self, argument: Any, where: str) -> bool:
        return self.text(argument[0], where) == self.text(argument[1], where)

    def _not(self, argument: Any, where: str) -> bool:
        return not self._holds(argument[0], where)

    def _and(self, argument: Any, where: str) -> bool:
        return all(self._holds(each, where) for each in argument)

    def _or(self, argument: Any, where: str) -> bool:
        return any(self._holds(each, where) for each in argument)
