import re
from pathlib import Path

from stint.store import keys
from stint.store.keys import chat_completion

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "architecture.md").read_text()


def test_every_file_that_the_map_names_exists() -> None:
    named = set(re.findall(r"`([\w./]+\.py)`", TEXT))
    bases = (ROOT / "layers" / "core" / "stint", ROOT)

    missing = {name for name in named if not any((base / name).exists() for base in bases)}

    assert len(named) > 20
    assert missing == set()


def test_every_file_that_a_document_names_exists() -> None:
    documents = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]
    bases = (ROOT / "layers" / "core" / "stint", ROOT, ROOT / "docs")
    pattern = re.compile(r"`((?:[\w.-]+/)+[\w-]+\.(?:py|yaml|md|json|toml|mjs))`")
    named = [(path.name, name) for path in documents for name in pattern.findall(path.read_text())]

    assert len(named) > 40
    assert [each for each in named if not any((base / each[1]).exists() for base in bases)] == []


def test_every_folder_is_on_the_map() -> None:
    package, functions, tests = ROOT / "layers" / "core" / "stint", ROOT / "functions", ROOT / "tests"
    folders = {path.parent.name for path in (*package.glob("*/*.py"), *package.glob("services/*/*.py"))}
    tested = {path.name for path in tests.iterdir() if path.is_dir() and path.name[0] not in "._"}
    [named] = re.findall(r"each: (.*?);", " ".join(TEXT.replace("cli/", "").split()))

    assert {name for name in folders if f"{name}/" not in TEXT} == set()
    assert {name for name in tested if f"`{name}/`" not in TEXT} == set()
    assert set(named.split(", ")) == {path.parent.name for path in functions.glob("*/app.py")}


def test_the_table_of_keys_has_every_kind_of_partition() -> None:
    modules = (ROOT / "layers" / "core" / "stint" / "store").glob("*.py")
    pattern = re.compile(r"(?:\}#|Partition\(\"|Shards\(\")([a-z_-]+)")
    kinds = {kind for path in modules for kind in pattern.findall(path.read_text())}

    assert len(kinds) > 20
    assert {kind for kind in kinds if f"`T#{kind}" not in TEXT} == set()


def test_the_table_of_keys_has_every_template() -> None:
    found = [each for each in vars(keys).values() if isinstance(each, keys.Partition | keys.Record)]
    templates = {each.texts[0].replace("{tenant}", "T") for each in found}

    assert len(templates) > 20
    assert {template for template in templates if f"`{template}" not in TEXT} == set()


def test_the_table_of_keys_has_every_partition() -> None:
    agent, session, turn = (f"01a20230-9738-7000-a532-b1957dde788{number}" for number in range(3))
    response, conversation = f"resp_{'1' * 32}", f"conv_{'2' * 32}"
    partitions = [
        keys.agents("t"),
        keys.agent_config("t", agent).pk,
        keys.sessions("t", agent),
        keys.turn("t", agent, session, turn).pk,
        keys.pending("t", agent, session, turn).pk,
        keys.registrations("t"),
        keys.response_entry("t", response).pk,
        keys.response("t", response).pk,
        keys.conversation_entry("t", conversation).pk,
        keys.conversation("t", conversation).pk,
        keys.upload("t", f"upload_{'4' * 32}").pk,
        keys.file("t", f"file-{'3' * 32}").pk,
        keys.event("t", "event").pk,
        keys.signing_key("t").pk,
        chat_completion("t", f"chatcmpl_{'3' * 32}").pk,
    ]
    ids = {
        f"upload_{'4' * 32}": "{upload}",
        agent: "{agent}",
        session: "{session}",
        response: "{response}",
        conversation: "{conversation}",
    }

    for partition in partitions:
        for each, name in ids.items():
            partition = partition.replace(each, name)
        partition = re.sub(r"\.\d$", ".{shard}", partition).replace("event:event", "event:{event}")
        assert f"`T{partition.removeprefix('t')}`" in TEXT
