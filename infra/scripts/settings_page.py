"""The tables of `docs/settings.md`: settings by topic with their template parameters, and the other parameters."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from infra.local.__main__ import DEFAULTS
from infra.local.environment import shell_settings
from infra.scripts.options import Options
from infra.scripts.page_parts import replace_part
from pydantic import SecretStr
from pydantic.fields import FieldInfo
from samtranslator.yaml_helper import yaml_parse

from stint.settings import Settings, variable_of

Template = dict[str, Any]
TEMPLATE = Path(__file__).resolve().parents[2] / "template.yaml"

TOPICS = {
    "Storage": "table keys_table bucket queue_url schedule_group schedule_role_arn event_bus key_layout "
    "session_expiry_days retention_days",
    "Callers": "auth iam_roles data_role_arn operator_tenant max_key_days oidc_issuer oidc_audience oidc_algorithms "
    "oidc_tenant oidc_tenant_claim oidc_subject_claim oidc_scopes_claim oidc_scope_prefix oidc_models_claim",
    "Models": "default_model models openai_base_url openai_api_key openai_secret_arn providers bedrock_region "
    "prompt_cache hide_cached_tokens image_model model_stall_seconds scripted_models scripted_word_seconds",
    "Tools and shields": "registry mcp_seconds tool_result_bytes allowed_hosts own_functions "
    "web_search tavily_api_key brave_api_key wolfram_api_key tools_secret_arn tavily_base_url brave_base_url "
    "wolfram_base_url credentials_key_arn sandbox_function agentcore_interpreter output_shield_window",
    "Knowledge": "embedding_model vector_index second_vector_index vector_bucket packed_bytes",
    "Runs": "lease_seconds heartbeat_seconds session_stream_seconds session_stream_share find_retries history_bytes "
    "transcript_cache_bytes agent_cache_seconds unsigned_content_until",
    "Limits and money": "max_request_bytes max_fetched_bytes prices tenants usage_sums",
    "Traces": "traces otlp_endpoint otlp_traces_endpoint otlp_headers traces_secret_arn otlp_timeout traces_content "
    "service_name",
    "Routes and web pages": "october_api cors_origin",
    "Set by Lambda, or by `make run`": "memory_mb runtime_api refused_ports",
}
"""The fields of Settings, by topic."""


def write_settings(text: str) -> str:
    """Return the text of `docs/settings.md` with its tables."""
    template: Template = yaml_parse(TEMPLATE.read_text())
    signed: Template = yaml_parse(TEMPLATE.read_text())
    Options(auth="iam").apply(signed)  # it has a parameter of its own
    parameters = parameters_by_variable(template)
    parameters = {**parameters_by_variable(signed), **parameters}
    parts = {
        "local defaults": [local_defaults(template)],
        "settings": setting_tables(template, parameters),
        "parameters": parameter_tables(template, parameters),
    }
    for name, tables in parts.items():
        text = replace_part("settings.md", text, name, "\n\n".join(tables))
    return text


def local_defaults(template: Template) -> str:
    """Return the table of settings that have another default with `make run` than in a stack."""
    deployed = {variable_of(name): default_of(field) for name, field in Settings.model_fields.items()}
    deployed |= {variable: default for variable in deployed if (default := deployed_default(template, variable))}
    own = {name: value for name, value in (DEFAULTS | shell_settings({})).items() if value != deployed.get(name, value)}
    rows = [[code(name), code(own[name]), code(deployed[name])] for name in sorted(own)]
    return table(["setting", "with `make run`", "in a stack"], rows)


def setting_tables(template: Template, parameters: Mapping[str, list[str]]) -> Iterator[str]:
    """Yield the heading and the table of each topic. Raises ValueError if not each setting has one topic."""
    grouped = [name for names in TOPICS.values() for name in names.split()]
    if sorted(grouped) != sorted(Settings.model_fields):
        wrong = {*grouped} ^ {*Settings.model_fields} or {name for name in grouped if grouped.count(name) > 1}
        raise ValueError(f"Name these settings once in TOPICS of infra/scripts/settings_page.py: {sorted(wrong)}.")
    for topic, names in TOPICS.items():
        rows = [setting_row(template, parameters, name, Settings.model_fields[name]) for name in names.split()]
        yield f"## {topic}\n\n{table(['variable', 'parameter', 'default', 'meaning'], rows)}"


def setting_row(template: Template, parameters: Mapping[str, list[str]], name: str, field: FieldInfo) -> list[str]:
    variable = variable_of(name)
    default, deployed, names = default_of(field), deployed_default(template, variable), parameters.get(variable)
    defaults = [code(default), f"{code(deployed)} in a stack" if deployed not in (None, default) else ""]
    set_by = "the stack" if names == [] else ", ".join(map(code, names or []))
    return [code(variable), set_by, ", ".join(filter(None, defaults)), prose(field.description or "")]


def deployed_default(template: Template, variable: str) -> str | None:
    """Return the default of the parameter that a setting has as its value; None if there is none."""
    for name, value in variables_of(template):
        match value:
            case {"Ref": str(parameter)} if name == variable and parameter in template["Parameters"]:
                return str(template["Parameters"][parameter].get("Default", ""))
    return None


def default_of(field: FieldInfo) -> str:
    """Return the default of a setting as its variable has it."""
    default = field.default.get_secret_value() if isinstance(field.default, SecretStr) else field.default
    return str(default).lower() if isinstance(default, bool) else "" if default is None else str(default)


def parameter_tables(template: Template, parameters: Mapping[str, list[str]]) -> Iterator[str]:
    """Yield the heading and the table of each group of parameters that set no setting."""
    settings = {name for variable in map(variable_of, Settings.model_fields) for name in parameters.get(variable, [])}
    for group in template["Metadata"]["AWS::CloudFormation::Interface"]["ParameterGroups"]:
        if rows := [parameter_row(template, name) for name in group["Parameters"] if name not in settings]:
            yield f"### {group['Label']['default']}\n\n{table(['parameter', 'default', 'meaning'], rows)}"


def parameter_row(template: Template, name: str) -> list[str]:
    parameter = template["Parameters"][name]
    choices = ", ".join(code(str(each)) for each in parameter.get("AllowedValues", ()))
    meaning = prose(parameter["Description"]) if "Description" in parameter else f"One of {choices}."
    return [code(name), code(str(parameter.get("Default", ""))), meaning]


def parameters_by_variable(template: Template) -> dict[str, list[str]]:
    """Return the variables of the functions, each with the parameters that decide its value."""
    found: dict[str, set[str]] = {}
    for variable, value in variables_of(template):
        found.setdefault(variable, set()).update(set(references(template, value)) & set(template["Parameters"]))
    return {variable: sorted(names) for variable, names in found.items()}


def variables_of(template: Template) -> Iterator[tuple[str, object]]:
    for resource in template["Resources"].values():
        yield from resource.get("Properties", {}).get("Environment", {}).get("Variables", {}).items()


def references(template: Template, value: object) -> Iterator[str]:
    """Yield what a value refers to, also in the conditions that it depends on."""
    match value:
        case {"Ref": str(name)}:
            yield name
        case {"Condition": str(name)}:
            yield from references(template, template["Conditions"][name])
        case {"Fn::If": [str(name), *values]}:
            yield from references(template, [template["Conditions"][name], *values])
        case {"Fn::Sub": str(text)}:
            yield from (name for name in template["Parameters"] if f"${{{name}}}" in text)
        case dict():
            yield from references(template, list(value.values()))
        case list():
            for each in value:
                yield from references(template, each)


def table(columns: list[str], rows: list[list[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(cells)} |".replace("| --- ", "|---").replace("--- |", "---|") for cells in lines)


def code(text: str) -> str:
    return f"`{text}`" if text else ""


def prose(text: str) -> str:
    """Return a description as Markdown, with links to the pages that it names."""
    return re.sub(r"docs/([\w-]+\.md)", r"[\1](\1)", re.sub(r"([<*])", r"\\\1", text))
