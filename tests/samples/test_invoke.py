import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from infra.local import sam_template
from infra.local.engine import ROOT
from infra.local.errors import LocalCloudError
from infra.local.invoke import EVENTS
from infra.local.sample_ids import AWAITING_TURN
from tests.samples.answers import documents
from tests.servers.stored_objects import StoredObjectsServer


def invoke(function: str, event: Path | str, state: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """`make invoke`, without what the shell may set for functions."""
    shell = {name: value for name, value in os.environ.items() if not name.startswith(("STINT_", "OPENAI_", "AWS_"))}
    command = [sys.executable, "-m", "infra.local", "--state", str(state), "invoke", function, str(event)]
    environment = shell | {"PYTHONPATH": "layers/core:."} | variables
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=40)


def test_an_event_finds_what_it_names_whatever_the_last_one_did(tmp_path: Path) -> None:
    deletion = invoke("worker", "events/worker/delete_agent.json", tmp_path)
    resumption = invoke("turns", "events/turns/resume_turn_streaming.json", tmp_path)

    assert (deletion.returncode, deletion.stdout) == (0, '{"batchItemFailures": []}\n'), deletion.stderr
    head, _, body = resumption.stdout.partition("\n\n")
    assert head.startswith("HTTP 200\n"), resumption.stderr
    assert "content-type: text/event-stream" in head
    payload = documents("text/event-stream", body.encode())[-1]["event"]["payload"]
    assert payload["event_type"] == "turn_complete"
    assert payload["turn"]["turn_id"] == AWAITING_TURN


def test_the_worker_runs_the_automation_of_the_samples(tmp_path: Path) -> None:
    run = invoke("worker", "events/worker/run_automation.json", tmp_path)

    assert (run.returncode, run.stdout) == (0, '{"batchItemFailures": []}\n'), run.stderr
    assert "is deleted" not in run.stderr
    assert "is paused" not in run.stderr


@pytest.mark.parametrize("event", ["insert_documents", "insert_chunks"])
def test_an_insertion_that_the_samples_have_needs_no_worker(tmp_path: Path, event: str) -> None:
    insertion = invoke("knowledge", f"events/knowledge/{event}.json", tmp_path)

    head, _, body = insertion.stdout.partition("\n\n")
    assert head.startswith("HTTP 200\n"), insertion.stderr
    assert body == "null\n"


def test_a_query_finds_the_document_of_the_samples(tmp_path: Path) -> None:
    invoke("knowledge", "events/knowledge/unregister_vector_db.json", tmp_path)
    query = invoke("knowledge", "events/knowledge/query_context.json", tmp_path)

    assert '"document_ids": [\n      "llamas"\n    ]' in query.stdout, query.stderr


@pytest.mark.parametrize(
    ("function", "event", "status"),
    [
        ("october", "run_shield", 200),
        ("registry", "get_usage", 200),
        ("october", "get_trace", 501),
        ("openai_agents", "get_automation", 200),
        ("openai_agents", "create_automation", 200),
    ],
)
def test_an_event_has_the_status_that_the_readme_says(tmp_path: Path, function: str, event: str, status: int) -> None:
    answer = invoke(function, f"events/{function}/{event}.json", tmp_path)

    assert answer.stdout.startswith(f"HTTP {status}\n"), answer.stderr


def test_the_authorizer_refuses_an_unknown_key_and_logs_no_secret(tmp_path: Path) -> None:
    event = EVENTS / "authorizer" / "unknown_key.json"
    credential = json.loads(event.read_text())["headers"]["Authorization"].removeprefix("Bearer ")

    answer = invoke("authorizer", event, tmp_path)

    assert answer.returncode == 1
    assert '"errorMessage": "Unauthorized"' in answer.stderr
    assert "The API key is unknown, wrong, expired or revoked." in answer.stderr
    assert credential not in answer.stderr + answer.stdout


def test_the_sandbox_runs_code_with_a_file(tmp_path: Path) -> None:
    answer = invoke("sandbox", "events/sandbox/run_code.json", tmp_path)

    result = json.loads(answer.stdout)
    assert (result["stdout"], result["stderr"], [file["name"] for file in result["files"]]) == ("2\n", "", ["out.txt"])


def test_json_is_printed_to_be_read(tmp_path: Path) -> None:
    answer = invoke("registry", "events/registry/get_version.json", tmp_path)

    head, _, body = answer.stdout.partition("\n\n")
    assert head.startswith("HTTP 200\n"), answer.stderr
    assert body == '{\n  "version": "0.2.12"\n}\n'


def test_a_missing_event_lists_some_of_each_function(tmp_path: Path) -> None:
    answer = invoke("turns", "events/turns/missing.json", tmp_path)

    first, *listed = answer.stderr.splitlines()
    assert first.startswith("stint: cannot read the event events/turns/missing.json")
    assert len(listed) < 15
    for folder in ("admin", "agents", "turns", "responses", "knowledge", "registry", "worker"):
        (line,) = [line for line in listed if line.startswith(f"  {folder}/")]
        assert (EVENTS / folder / line.split()[1]).exists()


def test_a_call_without_function_or_event_prints_the_usage() -> None:
    command = ["make", "--no-print-directory", "invoke"]
    shell = {name: value for name, value in os.environ.items() if name != "MAKEFLAGS"}  # no warning about its jobs

    call = subprocess.run(command, cwd=ROOT, env=shell, capture_output=True, text=True, check=False, timeout=40)

    assert call.returncode == 2
    assert "usage: make invoke FUNCTION=turns EVENT=events/turns/create_turn.json" in call.stderr
    assert len(call.stderr.splitlines()) < 16


@pytest.mark.parametrize(("variables", "state"), [([], ".stint/invoke"), (["STATE=mine"], "mine")])
def test_a_call_leaves_the_state_of_make_run_alone_unless_it_is_named(variables: list[str], state: str) -> None:
    command = ["make", "--dry-run", "--no-print-directory", "invoke", "FUNCTION=turns", "EVENT=e.json", *variables]
    shell = {name: value for name, value in os.environ.items() if name != "STATE"}

    call = subprocess.run(command, cwd=ROOT, env=shell, capture_output=True, text=True, check=True, timeout=40)

    assert f"--state {state} " in call.stdout


def test_the_variable_that_chose_the_default_model_is_named(tmp_path: Path) -> None:
    answer = invoke("registry", "events/registry/get_version.json", tmp_path, OPENAI_BASE_URL="http://127.0.0.1:9/v1")

    assert "default model openai/gpt-4.1-mini (because OPENAI_BASE_URL is set; STINT_DEFAULT_MODEL" in answer.stderr


def test_an_event_that_is_no_json_is_refused(tmp_path: Path) -> None:
    broken = tmp_path / "event.json"
    broken.write_text("{")

    answer = invoke("turns", broken, tmp_path / "state")

    (line,) = answer.stderr.splitlines()
    assert "is not JSON" in line


def test_sam_local_needs_a_running_cloud(tmp_path: Path) -> None:
    with pytest.raises(LocalCloudError, match="make run"):
        sam_template.running_environment(tmp_path)


@pytest.mark.built
def test_the_template_for_sam_local_declares_what_leads_to_the_data(
    build: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sam_template, "LOCAL", tmp_path / "local.yaml")
    sam_template.write_template({"AWS_ENDPOINT_URL_S3": "http://127.0.0.1:9", "STINT_TABLE": "table"})

    built = yaml.safe_load((build / "template.yaml").read_text())
    local = yaml.safe_load(sam_template.LOCAL.read_text())
    endpoint = {"AWS_ENDPOINT_URL_S3": "http://127.0.0.1:9"}
    for name, more in (("Turns", endpoint | {"STINT_TABLE": "table"}), ("Sandbox", endpoint)):
        declared = built["Resources"][name]["Properties"]["Environment"]["Variables"]
        assert local["Resources"][name]["Properties"]["Environment"]["Variables"] == declared | more
    built_for = built["Resources"]["CoreLayer"]["Metadata"]["BuildMethod"]
    assert local["Parameters"]["Runtime"]["Default"] == built_for


def test_a_function_of_the_local_cloud_reads_a_setting_from_its_object(tmp_path: Path) -> None:
    shield = {"shield_id": "stored", "provider_id": "deny-list", "params": {"words": ["no"]}}
    with StoredObjectsServer() as server:
        variables = {"STINT_REGISTRY": "ssm:///stint/registry?version=2", "AWS_ENDPOINT_URL_SSM": server.url}
        server.parameters["/stint/registry", "2"] = json.dumps({"shields": [shield]})
        found = invoke("registry", "events/registry/list_shields.json", tmp_path, **variables)
        del server.parameters["/stint/registry", "2"]
        lost = invoke("registry", "events/registry/list_shields.json", tmp_path, **variables)

    assert '"stored"' in found.stdout, found.stderr
    assert lost.returncode == 1
    assert "STINT_REGISTRY: ssm:///stint/registry?version=2 cannot be read: ParameterNotFound (400)" in lost.stderr
