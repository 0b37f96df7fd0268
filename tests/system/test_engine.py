import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import boto3
import httpx
import pytest
from infra.local.engine import ROOT, Engine

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_s3 import S3Client


def dynamodb(engine: Engine) -> "DynamoDBClient":
    return boto3.client(
        "dynamodb",
        endpoint_url=engine.endpoint,
        region_name=engine.region,
        aws_access_key_id="local",
        aws_secret_access_key="local",
    )


def s3(engine: Engine) -> "S3Client":
    return boto3.client(
        "s3",
        endpoint_url=engine.endpoint,
        region_name=engine.region,
        aws_access_key_id="local",
        aws_secret_access_key="local",
    )


def write_everywhere(engine: Engine) -> None:
    dynamodb(engine).put_item(TableName=engine.outputs["TableName"], Item={"pk": {"S": "p"}, "sk": {"S": "s"}})
    s3(engine).put_object(Bucket=engine.outputs["BucketName"], Key="kept/a", Body=b"body")


def holds_what_was_written(engine: Engine) -> bool:
    items = dynamodb(engine).scan(TableName=engine.outputs["TableName"])["Items"]
    listed = s3(engine).list_objects_v2(Bucket=engine.outputs["BucketName"]).get("Contents", [])
    return [item["pk"]["S"] for item in items] == ["p"] and [entry["Key"] for entry in listed] == ["kept/a"]


def test_no_web_page_reads_what_is_stored(engine: Engine) -> None:
    ready = f"{engine.endpoint}/_ministack/ready"

    for page in ({"origin": "https://evil.example"}, {"host": "evil.example"}):
        answer = httpx.get(ready, headers=page, trust_env=False, timeout=120)

        assert answer.status_code == 403
        assert "access-control-allow-origin" not in answer.headers
    assert httpx.get(ready, trust_env=False, timeout=120).status_code == 200


def test_state_is_kept_from_one_start_to_the_next(tmp_path: Path) -> None:
    with Engine(tmp_path) as first:
        write_everywhere(first)

    with Engine(tmp_path) as second:
        kept = holds_what_was_written(second)

    assert kept


def test_state_is_saved_and_the_process_ends_when_its_parent_is_killed(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from infra.local.engine import Engine\n"
        "engine = Engine(Path(sys.argv[1])).__enter__()\n"
        "print(engine.pid, engine.endpoint, engine.outputs['TableName'], flush=True)\n"
        "sys.stdin.read()"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=ROOT,
        text=True,
    )
    with parent:
        assert parent.stdout is not None
        pid, endpoint, table = parent.stdout.readline().split()
        client = boto3.client(
            "dynamodb",
            endpoint_url=endpoint,
            region_name="us-east-1",
            aws_access_key_id="a",
            aws_secret_access_key="b",
        )
        client.put_item(TableName=table, Item={"pk": {"S": "p"}, "sk": {"S": "s"}})

        parent.send_signal(signal.SIGKILL)
        parent.wait()

    assert ends(int(pid), within=10)
    with Engine(tmp_path) as again:
        assert len(dynamodb(again).scan(TableName=again.outputs["TableName"])["Items"]) == 1


def test_an_engine_that_was_killed_starts_again(tmp_path: Path) -> None:
    with Engine(tmp_path) as first:
        write_everywhere(first)
        os.kill(first.pid, signal.SIGKILL)

    with Engine(tmp_path) as second:
        write_everywhere(second)

        assert holds_what_was_written(second)


def test_changes_are_saved_while_the_engine_runs(tmp_path: Path) -> None:
    with Engine(tmp_path, save_seconds=0.1) as first:
        write_everywhere(first)
        before = time.time()
        while not is_saved_after(tmp_path, before):
            dynamodb(first).delete_item(TableName=first.outputs["TableName"], Key={"pk": {"S": "x"}, "sk": {"S": "y"}})
            time.sleep(0.05)
        os.kill(first.pid, signal.SIGKILL)

    with Engine(tmp_path) as second:
        assert holds_what_was_written(second)


def is_saved_after(folder: Path, moment: float) -> bool:
    saved = folder / "state" / "dynamodb.json"
    return saved.exists() and saved.stat().st_mtime > moment


def test_nothing_is_saved_while_nothing_changes(tmp_path: Path) -> None:
    with Engine(tmp_path, save_seconds=0.1) as engine:
        write_everywhere(engine)
        time.sleep(1)
        saved = (tmp_path / "state" / "dynamodb.json").stat().st_mtime_ns
        dynamodb(engine).scan(TableName=engine.outputs["TableName"])
        time.sleep(0.5)

        assert (tmp_path / "state" / "dynamodb.json").stat().st_mtime_ns == saved


def test_a_save_that_fails_is_tried_again(tmp_path: Path) -> None:
    with Engine(tmp_path, save_seconds=0.1) as engine:
        obstacle = tmp_path / "state" / "dynamodb.json.tmp"
        while not obstacle.is_dir():
            with contextlib.suppress(FileExistsError):
                obstacle.mkdir(parents=True)
        write_everywhere(engine)
        time.sleep(0.5)
        obstacle.rmdir()
        before = time.time()
        while not is_saved_after(tmp_path, before):
            time.sleep(0.05)


def test_an_engine_that_cannot_save_its_state_says_so(tmp_path: Path) -> None:
    with Engine(tmp_path) as engine:
        write_everywhere(engine)
        shutil.rmtree(tmp_path / "state", ignore_errors=True)
        (tmp_path / "state").write_text("not a folder")

    assert "before it had saved its state" in engine.unsaved


def test_a_saved_state_is_not_reported(tmp_path: Path) -> None:
    with Engine(tmp_path) as engine:
        write_everywhere(engine)

    assert engine.unsaved == ""


def test_a_temporary_engine_leaves_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    with Engine():
        during = list(tmp_path.iterdir())

    assert during
    assert list(tmp_path.iterdir()) == []


def test_capacity_is_reported_by_item_size(engine: Engine) -> None:
    item = {"pk": {"S": "capacity"}, "sk": {"S": "1"}, "body": {"S": "x" * 3800}}

    answer = dynamodb(engine).put_item(TableName=engine.outputs["TableName"], Item=item, ReturnConsumedCapacity="TOTAL")

    assert answer["ConsumedCapacity"]["CapacityUnits"] == 4


def ends(pid: int, within: float) -> bool:
    deadline = time.monotonic() + within
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.02)
    return False
