"""Two systems, of which the second one is the model server of the first one."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from infra.local.engine import ROOT
from openai import DefaultHttpxClient, OpenAI
from tests.openresponses.frames import check_stream
from tests.openresponses.peer_wire import PeerTap
from tests.servers.chat_completions import ChatCompletionsServer
from tests.system.run_process import Run
from tests.system.test_auth_clients import KEY

Json = dict[str, Any]
WRONG_KEY = f"stk_{'0' * 32}_{'0' * 64}"
WORDS = {"STINT_SCRIPTED_WORD_SECONDS": "0.005"}


@dataclass(frozen=True)
class Peers:
    """The first system and its client, the second one with one of its keys, and the tap before it.

    The providers of the first one are `peer`, which is called by the Responses API, and the same server without `api`:
    `plain`, `other` and, with a wrong key, `stranger`. The provider `lab` of the second one has Chat Completions only.
    """

    first: Run
    second: Run
    tap: PeerTap
    key: str
    lab: ChatCompletionsServer
    client: OpenAI

    def answered(self, place: int) -> list[Json]:
        """Return the output of the second system in an exchange."""
        events = check_stream(bytes(self.tap.exchanges[place].body))
        output: list[Json] = events[-1]["response"]["output"]
        return output

    def forget(self) -> None:
        """Forget the exchanges so far."""
        assert not self.tap.faults
        self.tap.exchanges.clear()


@contextmanager
def running_peers(folder: Path) -> Iterator[Peers]:
    """Run both. The second one has keys, and serves only who has one."""
    with ChatCompletionsServer() as lab:
        providers = json.dumps([{"id": "lab", "base_url": lab.base_url, "key_variable": "STINT_LAB_KEY"}])
        shell = WORDS | {"STINT_PROVIDERS": providers, "STINT_LAB_KEY": "key-of-lab"}
        second = Run(folder / "second", 0, "--auth", "on", shell=shell | {"PYTHONPATH": "layers/core:."})
        second.read_until("Ctrl-C stops")
        (key,) = {found for line in second.lines for found in KEY.findall(line)}
        tap = PeerTap(second.port)
        server = {"base_url": f"http://127.0.0.1:{tap.port}/v1", "key_variable": "STINT_PEER_KEY"}
        servers = [server | {"id": "peer", "api": "responses"}, server | {"id": "plain"}, server | {"id": "other"}]
        servers.append(server | {"id": "stranger", "key_variable": "STINT_WRONG_KEY"})
        shell = WORDS | {"STINT_PROVIDERS": json.dumps(servers), "STINT_PEER_KEY": key, "STINT_WRONG_KEY": WRONG_KEY}
        first = Run(folder / "first", 0, shell=shell)
        first.read_until("Ctrl-C stops")
        http = DefaultHttpxClient(trust_env=False)
        with OpenAI(base_url=f"{first.url}/v1", api_key="key", http_client=http, max_retries=0) as client:
            yield Peers(first, second, tap, key, lab, client)
        first.stop()
        second.stop()
        tap.close()


@contextmanager
def running_mcp_server() -> Iterator[str]:
    """Run `tests.servers.mcp_server`, and yield its URL."""
    command = [sys.executable, "-m", "tests.servers.mcp_server"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout
        yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
        process.kill()
