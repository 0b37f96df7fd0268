"""A fault of a template is one line with its file, its line and what to do."""

from pathlib import Path

import pytest
from infra.local.errors import LocalCloudError
from infra.local.system import System
from infra.local.template_file import read_template
from infra.local.tool_functions import tool_functions
from infra.local.translation import translate

HEAD = "Transform: AWS::Serverless-2016-10-31\nResources:\n  Tool:\n"
FUNCTION = HEAD + "    Type: AWS::Serverless::Function\n    Properties:\n"
VALID = FUNCTION + "      CodeUri: code\n      Handler: a.b\n      Runtime: python3.13\n"
RAW = HEAD + "    Type: AWS::Lambda::Function\n    Properties: {Role: r, Handler: a.b, "


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            f"{FUNCTION}      CodeUri: code\n     Handler: a.b\n",
            r", line 7: not valid YAML \(did not find expected key\): check the indentation$",
        ),
        ("Resources:\n\tTool: 1\n", r", line 2: not valid YAML \(.*\): use spaces, not tabs$"),
        (
            f"{HEAD}    Type AWS::Serverless::Function\n    Properties:\n      CodeUri: x\n",
            ", line 5: not valid YAML .*: check the indentation, and the colon in the line before$",
        ),
        (f"{HEAD}    Created: 2026-13-45\n", r"not valid YAML \(month must be in 1\.\.12"),
        ("\x01", "not valid YAML"),
        ("Resources: [a\n", "line 2: not valid YAML"),
        ("", "has no Resources$"),
        ("- a\n", "has no Resources$"),
        ("Resources: {}\n", "has no Resources$"),
        ("Transform: AWS::Serverless-2016-10-31\n", "has no Resources$"),
        ("Resources: [a]\n", "Resources must be a mapping"),
        ("Resources:\n  Tool: 1\n", "Tool has no Type: check the indentation"),
        ("Resources:\n  Tool: {Type: 7}\n", "Tool has no Type: check the indentation"),
        ("Resources:\n  Tool: {Type: A, Properties: [x]}\n", r"Tool\.Properties must be a mapping"),
        ("Resources:\n  Tool: {Type: A}\nParameters:\n  - a\n", "Parameters must be a mapping"),
        ("Resources:\n  Tool: {Type: A}\nParameters:\n  A: b\n", r"Parameters\.A must be a mapping"),
    ],
)
def test_a_broken_template_is_one_line(tmp_path: Path, text: str, said: str) -> None:
    template = tmp_path / "template.yaml"
    template.write_text(text)

    with pytest.raises(LocalCloudError, match=said) as raised:
        read_template(template)

    assert "\n" not in str(raised.value)
    assert str(raised.value).startswith(str(template))


def test_what_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "template.yaml").write_bytes(b"Resources: \xe9\n")

    with pytest.raises(LocalCloudError, match=r"template\.yaml is not UTF-8 \(byte 12\): save it as UTF-8"):
        read_template(tmp_path / "template.yaml")
    with pytest.raises(LocalCloudError, match=r"is a folder: name its template\.yaml"):
        read_template(tmp_path)
    with pytest.raises(LocalCloudError, match="there is no template"):
        read_template(tmp_path / "missing.yaml")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"{FUNCTION}      Handler: a.b\n      Runtime: python3.13\n", "Tool has no CodeUri: write the path"),
        (f"{FUNCTION}      CodeUri: {{Bucket: b, Key: k}}\n      Handler: a.b\n", "Tool has no CodeUri"),
        (f"{HEAD}    Type: AWS::Serverless::Function\n", "Tool has no CodeUri"),
        (f"{FUNCTION}      CodeUri: code\n      Runtime: python3.13\n", "is not valid: .*Handler"),
        (f"{VALID}      Environment: {{Variables: }}\n", r"Tool\.Environment\.Variables must be a mapping"),
        (f"{VALID}      Timeout: ten\n", "a Timeout or MemorySize is not a number"),
        (f"{RAW}Runtime: python3.13, Code: {{ZipFile: x}}}}\n", "Tool: its code must be in a folder"),
        (f"{RAW}Runtime: python3.13, Code: folder}}\n", "Tool: its code must be in a folder"),
        (f"{RAW}PackageType: Image, Code: {{ImageUri: x}}}}\n", "Tool: the local cloud runs Python, not Image"),
    ],
)
def test_a_function_without_code_in_a_folder_is_named(tmp_path: Path, text: str, said: str) -> None:
    template = tmp_path / "template.yaml"
    template.write_text(text)

    with pytest.raises(LocalCloudError, match=said):
        tool_functions(template, translate(template, "us-east-1"), "us-east-1", ())


def test_code_of_all_functions_may_be_named_once(tmp_path: Path) -> None:
    template = tmp_path / "template.yaml"
    shared = "Globals: {Function: {CodeUri: code, Runtime: python3.13}}\n"
    template.write_text(f"{shared}{FUNCTION}      Handler: a.b\n")

    (function,) = System(template, translate(template, "us-east-1")).functions

    assert function.code == tmp_path / "code"
