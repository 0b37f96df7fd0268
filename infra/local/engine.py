"""Local AWS services: a ministack process with the data resources of `infra/aws/data.yaml`.

The process has its own environment of Python packages, and must neither outlive this process nor be killed before it
has saved its state. So it stops when its standard input is closed, which happens however this process ends, and is in
another session, where Ctrl-C does not reach it. It inherits the listening socket, so that there is no port to find out,
and the locked file of the state, which stays locked until it has ended.
"""

import shutil
import socket
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self
from urllib.request import ProxyHandler, build_opener

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError
from infra.local.errors import LocalCloudError
from infra.local.server import listen_apart

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / ".venv-ministack" / "bin" / "python"
PROGRAM = "infra.local.engine_process"
DATA_TEMPLATE = ROOT / "infra" / "aws" / "data.yaml"
DATA_STACK = "stint-data"
# The services that functions call, and the suffix of each one's endpoint variable.
SERVICES = {
    "dynamodb": "DYNAMODB",
    "s3": "S3",
    "sqs": "SQS",
    "events": "EVENTBRIDGE",
    "scheduler": "SCHEDULER",
    "secretsmanager": "SECRETS_MANAGER",
    "ssm": "SSM",
    "kms": "KMS",
}
KEY_ALIAS = "alias/stint-credentials"
START_SECONDS = 20.0
SAVE_INTERVAL_SECONDS = 30.0
"""Seconds between two saves while something changes."""
STOP_SECONDS = 10.0


@dataclass(frozen=True)
class RunningEngine:
    """The address of a started engine, and the names of the data resources in it."""

    endpoint: str
    region: str
    outputs: dict[str, str]

    def environment(self) -> dict[str, str]:
        """Return the variables that make AWS clients use the engine; the credentials are placeholders."""
        urls = {f"AWS_ENDPOINT_URL_{service}": self.endpoint for service in SERVICES.values()}
        region = {"AWS_REGION": self.region, "AWS_DEFAULT_REGION": self.region}
        return urls | region | {"AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local"}

    def variables(self) -> dict[str, str]:
        """Return the variables of a process that uses the engine and the data resources in it."""
        settings = ("STINT_TABLE", "STINT_KEYS_TABLE", "STINT_BUCKET", "STINT_QUEUE_URL")
        outputs = ("TableName", "KeysTableName", "BucketName", "WorkQueueUrl")
        names = {name: self.outputs[output] for name, output in zip(settings, outputs, strict=True)}
        return self.environment() | names

    def hold_credentials_key(self) -> str:
        """Return the ARN of the KMS key of registered credentials, which is created once and kept with the state."""
        kms = self.client("kms")
        try:
            for alias in kms.list_aliases()["Aliases"]:
                if alias["AliasName"] == KEY_ALIAS:
                    return str(kms.describe_key(KeyId=alias["TargetKeyId"])["KeyMetadata"]["Arn"])
            created = kms.create_key(Description="Credentials of make run")["KeyMetadata"]
            kms.create_alias(AliasName=KEY_ALIAS, TargetKeyId=created["KeyId"])
            return str(created["Arn"])
        finally:
            kms.close()

    def client(self, service: str) -> Any:
        """Return a client of a service in the engine, which makes a single attempt."""
        make: Any = boto3.client
        return make(
            service,
            endpoint_url=self.endpoint,
            region_name=self.region,
            aws_access_key_id="local",
            aws_secret_access_key="local",  # noqa: S106 - the engine checks no credentials
            config=Config(retries={"total_max_attempts": 1}, proxies={}),
        )


class Engine:
    """Context manager that runs the engine. The engine saves its state when it stops, also if this process is killed.

    `state_dir` keeps tables and objects from one start to the next; None means a temporary folder that is removed at
    the end. `lock` is a locked file, which the engine holds until it has saved its state. After a stop, `unsaved` is
    the reason if a state that is to be kept was not saved. The engine separates data by region, so `region` must be
    that of every client. Raises LocalCloudError if the engine is not installed, does not start, or cannot create the
    data resources.
    """

    python = PYTHON
    program = PROGRAM

    def __init__(
        self,
        state_dir: Path | None = None,
        *,
        region: str = "us-east-1",
        lock: int | None = None,
        save_seconds: float = SAVE_INTERVAL_SECONDS,
    ) -> None:
        self.region = region
        self._save_seconds = save_seconds if state_dir else 0
        self.unsaved = ""
        self._lock = lock
        self.endpoint = ""
        self.outputs: dict[str, str] = {}
        self._kept = state_dir
        self._folder = state_dir or Path()
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        """Return the id of the running process."""
        if self._process is None:
            raise LocalCloudError("the local AWS engine is not running")
        return self._process.pid

    @property
    def running(self) -> RunningEngine:
        return RunningEngine(self.endpoint, self.region, self.outputs)

    def environment(self) -> dict[str, str]:
        """Return the variables that make AWS clients use the engine; the credentials are placeholders."""
        return self.running.environment()

    def start(self) -> None:
        require_engine(self.python)
        self._folder = self._kept or Path(tempfile.mkdtemp(prefix="stint-engine-"))
        self._folder.mkdir(parents=True, exist_ok=True)
        try:
            with listen_apart() as listener:
                self.endpoint = f"http://127.0.0.1:{listener.getsockname()[1]}"
                self._process = self._launch(listener)
            self._await_ready()
            self.outputs = self._hold_data_resources()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Stop the engine, which saves its state. A second call has no effect."""
        process, self._process = self._process, None
        if process is not None and process.stdin is not None:
            process.stdin.close()
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                # It hangs. What it has not saved is lost, which `unsaved` tells.
                process.kill()
                process.wait()
            if self._kept is not None and process.returncode:
                self.unsaved = (
                    f"the local AWS engine ended with code {process.returncode} before it had saved its state: what was"
                    f" stored since its start may be lost. Its log is {self._folder / 'engine.log'}"
                )
        if self._kept is None and self._folder != Path():
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = Path()

    def _launch(self, listener: socket.socket) -> subprocess.Popen[bytes]:
        with self._log() as log:
            return subprocess.Popen(
                [str(self.python), "-m", self.program, str(listener.fileno()), str(self._save_seconds)],
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                pass_fds=[listener.fileno(), *([] if self._lock is None else [self._lock])],
                env=self._settings(port=listener.getsockname()[1]),
                start_new_session=True,
            )

    def _log(self) -> IO[bytes]:
        return (self._folder / "engine.log").open("wb")

    def _settings(self, port: int) -> dict[str, str]:
        """Return ministack's own variables: optional listeners are off, and the Docker daemon is not used."""
        folder = str(self._folder.resolve())
        return {
            "GATEWAY_PORT": str(port),
            "BIND_HOST": "127.0.0.1",
            "MINISTACK_HOST": "127.0.0.1",
            "MINISTACK_REGION": self.region,
            "SERVICES": ",".join((*SERVICES, "cloudformation", "sts")),
            "PERSIST_STATE": "1" if self._kept else "0",
            "STATE_DIR": f"{folder}/state",
            "S3_PERSIST": "1" if self._kept else "0",
            "S3_DATA_DIR": f"{folder}/s3",
            "TMPDIR": folder,
            "SFTP_ENABLED": "0",
            "IOT_MTLS_ENABLED": "0",
            "DOCKER_HOST": "unix:///nonexistent",
            "LOG_LEVEL": "WARNING",
        }

    def _await_ready(self) -> None:
        """Wait until the engine answers. The socket already listens, so a single request waits in its queue."""
        try:
            direct = build_opener(ProxyHandler({}))
            with direct.open(f"{self.endpoint}/_ministack/ready", timeout=START_SECONDS) as answer:
                answer.read()
        except OSError as error:
            log = (self._folder / "engine.log").read_text(errors="replace").strip()
            raise LocalCloudError(f"the local AWS engine did not start ({error}): {log[-2000:]}") from error

    def _hold_data_resources(self) -> dict[str, str]:
        cloudformation = self.running.client("cloudformation")
        try:
            return apply_stack(cloudformation, DATA_STACK, DATA_TEMPLATE.read_text())
        finally:
            cloudformation.close()


def require_engine(python: Path = PYTHON) -> None:
    """Raise LocalCloudError if the engine is not installed."""
    if not python.exists():
        raise LocalCloudError(f"the local AWS engine is not installed ({python} is missing): run `make setup`")


def apply_stack(cloudformation: Any, name: str, template: str) -> dict[str, str]:
    """Create the stack, or update it if it exists, and return its outputs."""
    try:
        cloudformation.create_stack(StackName=name, TemplateBody=template)
    except cloudformation.exceptions.AlreadyExistsException:
        try:
            cloudformation.update_stack(StackName=name, TemplateBody=template)
        except ClientError as error:
            if "No updates are to be performed" not in str(error):
                raise
    deadline = time.monotonic() + START_SECONDS
    stack = cloudformation.describe_stacks(StackName=name)["Stacks"][0]
    while stack["StackStatus"].endswith("_IN_PROGRESS") and time.monotonic() < deadline:
        time.sleep(0.02)
        stack = cloudformation.describe_stacks(StackName=name)["Stacks"][0]
    if stack["StackStatus"] not in ("CREATE_COMPLETE", "UPDATE_COMPLETE"):
        reason = stack.get("StackStatusReason", "no reason given")
        raise LocalCloudError(
            f"infra/aws/data.yaml does not match the stored state ({stack['StackStatus']}: {reason}). Use FRESH=1"
        )
    return {output["OutputKey"]: output["OutputValue"] for output in stack["Outputs"]}
