"""The snippets of docs/clients.md and docs/protocols.md, and their environments."""

import re
from dataclasses import dataclass
from pathlib import Path

from infra.local.engine import ROOT

SECTION = re.compile(r"^##+ (?P<client>.+)\n(?P<body>(?:(?!^##).*\n)*)", re.MULTILINE)
FENCE = re.compile(r"^```(?P<language>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
NODE = ROOT / "tests" / "node" / "node_modules"
NEWEST_OPENAI, OLDER_OPENAI, OLDER_MCP = "clients-openai", "clients-older-openai", "clients-older-mcp"
LLAMA_STACK = "clients-llama-stack"
ENVIRONMENTS = {
    "llama-stack-client 0.2.12 (Python)": "clients-llama-stack-0.2.12",
    "llama-stack-client (Python)": LLAMA_STACK,
    "ogx-client (Python)": LLAMA_STACK,
    "llama-stack-client (Node)": "node",
    "openai (Python)": NEWEST_OPENAI,
    "openai (Node)": "node",
    "openai, Agents API (Python)": NEWEST_OPENAI,
    "openai, Agents API (Node)": "node",
    "OpenAI Agents (Python)": NEWEST_OPENAI,
    "OpenAI Agents (Node)": "node",
    "LangChain and LangGraph": NEWEST_OPENAI,
    "Pydantic AI": NEWEST_OPENAI,
    "LlamaIndex": OLDER_OPENAI,
    "LiteLLM": OLDER_OPENAI,
    "AutoGen": NEWEST_OPENAI,
    "Microsoft Agent Framework": NEWEST_OPENAI,
    "Semantic Kernel": OLDER_MCP,
    "CrewAI": OLDER_MCP,
    "Strands Agents": OLDER_OPENAI,
    "Google ADK": OLDER_OPENAI,
    "Haystack": NEWEST_OPENAI,
    "DSPy": OLDER_OPENAI,
    "smolagents": NEWEST_OPENAI,
    "instructor": OLDER_OPENAI,
    "LangGraph (Node)": "node",
    "Vercel AI SDK (Node)": "node",
}
PROTOCOLS = "clients-protocols"
OF_PROTOCOLS = {
    "MCP (Python)": PROTOCOLS,
    "A2A (Python)": PROTOCOLS,
    "AG-UI (Python)": PROTOCOLS,
    "AG-UI (Node)": "node",
}


@dataclass(frozen=True)
class Snippet:
    """A snippet and its output."""

    client: str
    language: str
    code: str
    output: str

    @property
    def environment(self) -> Path:
        name = (ENVIRONMENTS | OF_PROTOCOLS)[self.client]
        return NODE if name == "node" else ROOT / f".venv-{name}"

    def command(self, folder: Path) -> list[str]:
        """Write the snippet to a file, and return the command that runs it."""
        if self.environment != NODE:
            file = folder / "snippet.py"
            file.write_text(self.code)
            return [str(self.environment / "bin" / "python"), str(file)]
        file = NODE / ".snippets" / f"{re.sub(r'[^a-z]+', '-', self.client.lower())}.mjs"  # node resolves from it
        file.parent.mkdir(exist_ok=True)
        file.write_text(self.code)
        return ["node", str(file)]


def read_snippets() -> list[Snippet]:
    """Return the snippets of the page, whose sections have the code and then its output."""
    return [make_snippet(section) for section in SECTION.finditer((ROOT / "docs" / "clients.md").read_text())]


def read_protocol_snippets() -> list[Snippet]:
    """Return those of the page of protocols, which has other sections, too."""
    sections = SECTION.finditer((ROOT / "docs" / "protocols.md").read_text())
    return [make_snippet(section) for section in sections if section["client"] in OF_PROTOCOLS]


def read_setup() -> str:
    """Return the commands of the page of protocols that save an agent."""
    [section] = [
        each["body"]
        for each in SECTION.finditer((ROOT / "docs" / "protocols.md").read_text())
        if each["client"] == "First programs"
    ]
    _, (_, commands) = FENCE.findall(section)
    return str(commands)


def make_snippet(section: "re.Match[str]") -> Snippet:
    (language, code), (text, output) = FENCE.findall(section["body"])
    assert text == "text", section["client"]
    return Snippet(section["client"], language, code, output)
