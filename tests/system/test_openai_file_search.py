"""Files, vector stores and file search, by the `openai` package against `make run`."""

import subprocess
import sys
from typing import Any

import pytest
from infra.local.engine import ROOT
from openai import BadRequestError, NotFoundError, OpenAI
from tests.system.run_process import Run

MODEL = "scripted/demo"
LLAMAS = "Llamas live in the Andes of Peru. They hum."
PENGUINS = "Penguins live in Antarctica. They dive for fish."
QUESTION = 'Use file search for "Where do llamas live?"'


def make_store(client: OpenAI) -> tuple[str, dict[str, str]]:
    """Make a store with two files. Return its id, and the files' ids by their names."""
    texts = {"llamas.md": LLAMAS, "penguins.txt": PENGUINS}
    files = {
        name: client.files.create(file=(name, text.encode()), purpose="assistants").id for name, text in texts.items()
    }
    store = client.vector_stores.create(name="Animals")
    for name, file_id in files.items():
        added = client.vector_stores.files.create_and_poll(
            file_id, vector_store_id=store.id, attributes={"kind": name.partition(".")[0]}
        )
        assert added.status == "completed", added.last_error
    return store.id, files


def test_files_are_uploaded_searched_and_cited(openai_client: OpenAI) -> None:
    store_id, files = make_store(openai_client)
    tools: Any = [{"type": "file_search", "vector_store_ids": [store_id], "max_num_results": 1}]

    response = openai_client.responses.create(
        model=MODEL, input=QUESTION, tools=tools, include=["file_search_call.results"]
    )
    found = openai_client.vector_stores.search(store_id, query="Where do llamas live?", max_num_results=1)

    output: list[Any] = list(response.output)
    call, message = output
    assert (call.type, call.status, call.queries) == ("file_search_call", "completed", ["Where do llamas live?"])
    [result] = call.results
    assert (result.file_id, result.filename) == (files["llamas.md"], "llamas.md")
    assert (result.text, result.attributes) == (LLAMAS, {"kind": "llamas"})
    assert 0 < result.score <= 1
    [citation] = message.content[0].annotations
    assert (citation.type, citation.file_id, citation.filename) == ("file_citation", files["llamas.md"], "llamas.md")
    assert 0 < citation.index <= len(response.output_text)
    assert "<|" not in response.output_text
    assert [(each.file_id, each.score) for each in found] == [(result.file_id, result.score)]
    assert openai_client.responses.retrieve(response.id).output_text == response.output_text


def test_a_filter_chooses_files_and_the_stream_helper_follows(openai_client: OpenAI) -> None:
    store_id, files = make_store(openai_client)
    only = {"type": "eq", "key": "kind", "value": "penguins"}
    tools: Any = [{"type": "file_search", "vector_store_ids": [store_id], "filters": only}]

    with openai_client.responses.stream(
        model=MODEL, input=QUESTION, tools=tools, include=["file_search_call.results"]
    ) as stream:
        names = [event.type for event in stream]
        output: list[Any] = list(stream.get_final_response().output)

    assert [name for name in names if name.startswith("response.file_search_call.")] == [
        "response.file_search_call.in_progress",
        "response.file_search_call.searching",
        "response.file_search_call.completed",
    ]
    assert names.index("response.output_text.annotation.added") < names.index("response.output_text.done")
    assert {result.file_id for result in output[0].results} == {files["penguins.txt"]}


def test_an_unknown_store_and_a_deleted_file_are_errors(openai_client: OpenAI) -> None:
    unknown: Any = [{"type": "file_search", "vector_store_ids": [f"vs_{'0' * 32}"]}]
    file = openai_client.files.create(file=("a.txt", b"plum jam"), purpose="user_data")
    asked: Any = [{"role": "user", "content": [{"type": "input_file", "file_id": file.id}]}]

    with pytest.raises(NotFoundError, match=f"vs_{'0' * 32}"):
        openai_client.responses.create(model=MODEL, input=QUESTION, tools=unknown)
    read = openai_client.responses.create(model=MODEL, input=asked)
    openai_client.files.delete(file.id)
    with pytest.raises(BadRequestError, match=file.id):
        openai_client.responses.create(model=MODEL, input=asked)

    assert "plum jam" in read.output_text


def test_the_example_runs_as_printed(responses_run: Run) -> None:
    command = [sys.executable, "docs/examples/file_search.py", responses_run.url]

    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[:3] == [
        "file: llamas.md completed",
        "file: penguins.md completed",
        "queries: ['Where do llamas live?'] found: ['llamas.md']",
    ]
    assert "cites: llamas.md at " in done.stdout
    assert "search: penguins.md Penguins live on the coasts of Antarctica. They dive for fish." in done.stdout
