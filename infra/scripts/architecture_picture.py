"""The picture of the parts of a stack, `docs/architecture.svg`: functions and services are those of the templates.

The picture has a background of its own and the colours of the reader's system, so that it is readable on light and on
dark pages. It is 640 units wide, so that texts are readable on a phone.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from samtranslator.yaml_helper import yaml_parse

Template = dict[str, Any]
ROOT = Path(__file__).resolve().parents[2]
WIDTH, HEIGHT = 640, 824

CAPTIONS = {
    "turns": "turns, steps",
    "responses": "responses, chat",
    "knowledge": "files, retrieval",
    "october": "October 2024",
    "openai_agents": "Agents API",
    "protocols": "MCP, A2A, AG-UI",
    "agents": "agents, sessions",
    "registry": "models, tools",
    "admin": "keys, usage",
    "console": "web page",
    "authorizer": "keys, tokens",
    "worker": "long tasks",
    "sandbox": "runs Python",
}
"""What each function serves or does."""

SERVICES = {
    "AWS::DynamoDB::Table": ("DynamoDB", "records, leases, keys"),
    "AWS::S3::Bucket": ("S3", "files, large bodies"),
    "AWS::S3Vectors::VectorBucket": ("S3 Vectors", "chunks of documents"),
    "AWS::SQS::Queue": ("SQS", "work queue"),
    "AWS::Events::EventBus": ("EventBridge", "events"),
}
"""The name of each service with resources in the templates, and what is in it."""

STYLE = """
.page { fill: #ffffff; stroke: #d1d9e0 }
.group { fill: #f6f8fa; stroke: #d1d9e0 }
.part { fill: #ffffff; stroke: #afb8c1 }
.stream { fill: #ddf4ff; stroke: #54aeff }
.service { fill: none; stroke: #818b98; stroke-dasharray: 4 3 }
.line { fill: none; stroke: #59636e; stroke-width: 1.5 }
.head { fill: #59636e }
text { fill: #1f2328; font: 14px system-ui, -apple-system, "Segoe UI", "Liberation Sans", Arial, sans-serif }
.name { font-size: 15px; font-weight: 600 }
.note { fill: #59636e }
.middle { text-anchor: middle }
@media (prefers-color-scheme: dark) {
  .page { fill: #0d1117; stroke: #3d444d }
  .group { fill: #151b23; stroke: #3d444d }
  .part { fill: #212830; stroke: #656c76 }
  .stream { fill: #0c2d4d; stroke: #4493f8 }
  .service { stroke: #9198a1 }
  .line { stroke: #9198a1 }
  .head { fill: #9198a1 }
  text { fill: #f0f6fc }
  .note { fill: #9198a1 }
}
""".strip()


@dataclass(frozen=True)
class Function:
    """A function of the template."""

    name: str
    has_routes: bool
    streams: bool
    sends_work: bool


@dataclass(frozen=True)
class Row:
    """The columns of a row."""

    left: float
    right: float
    columns: int
    gap: float

    @property
    def width(self) -> float:
        """Return the width of a column."""
        return (self.right - self.left - (self.columns - 1) * self.gap) / self.columns

    def x(self, column: int) -> float:
        """Return the left edge of a column."""
        return self.left + column * (self.width + self.gap)

    def middle(self, column: int) -> float:
        return self.x(column) + self.width / 2

    def gap_before(self, column: int, y: float) -> tuple[float, float, float, float]:
        """Return both ends of an arrow between a column and the one before it."""
        return self.x(column) - self.gap + 1, y, self.x(column) - 1, y


PAGE = Row(20, WIDTH - 20, 1, 0)
THIRDS = Row(20, WIDTH - 20, 3, 20)
QUARTERS = Row(36, WIDTH - 36, 4, 20)
"""The columns of the group of functions."""


@dataclass(frozen=True)
class Box:
    """A rectangle with a name and a note in its middle."""

    x: float
    y: float
    width: float
    height: float
    name: str
    note: str
    kind: str = "part"

    def lines(self) -> Iterator[str]:
        yield rectangle(self.x, self.y, self.width, self.height, self.kind)
        center, middle = self.x + self.width / 2, self.y + self.height / 2
        yield words(center, middle - 4 if self.note else middle + 5, self.name, "name middle")
        if self.note:
            yield words(center, middle + 16, self.note, "note middle")


def draw_architecture() -> str:
    """Return the SVG. Raises ValueError if a function has no caption, or a caption no function."""
    template: Template = yaml_parse((ROOT / "template.yaml").read_text())
    data: Template = yaml_parse((ROOT / "infra" / "aws" / "data.yaml").read_text())
    functions = {each.name: each for each in functions_of(template)}
    if wrong := functions.keys() ^ CAPTIONS.keys():
        raise ValueError(f"Correct CAPTIONS of infra/scripts/architecture_picture.py: {', '.join(sorted(wrong))}.")
    services = {each["Type"] for part in (template, data) for each in part["Resources"].values()} & SERVICES.keys()
    parts = [
        *draw_entrance(),
        *draw_functions(functions, services),
        *draw_neighbours(services),
    ]
    title = "The parts of a stack"
    description = f"Clients call API Gateway, which invokes the functions {', '.join(functions)}."
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="800" viewBox="0 0 {WIDTH} {HEIGHT}" role="img"'
            ' aria-labelledby="title description">',
            f'<title id="title">{title}</title>',
            f'<desc id="description">{escape(description)}</desc>',
            f"<style>\n{STYLE}\n</style>",
            '<marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6.5" markerHeight="6.5"'
            ' orient="auto-start-reverse"><path class="head" d="M0 0 8 4 0 8z"/></marker>',
            rectangle(0.5, 0.5, WIDTH - 1, HEIGHT - 1, "page"),
            *parts,
            "</svg>\n",
        ]
    )


def functions_of(template: Template) -> Iterator[Function]:
    for resource in template["Resources"].values():
        if resource["Type"] == "AWS::Serverless::Function":
            properties = resource["Properties"]
            routes = [each["Properties"] for each in properties.get("Events", {}).values() if each["Type"] == "Api"]
            streams = any("ResponseTransferMode" in each for each in routes)
            variables = properties.get("Environment", {}).get("Variables", {})
            yield Function(Path(properties["CodeUri"]).name, bool(routes), streams, "STINT_QUEUE_URL" in variables)


def draw_entrance() -> Iterator[str]:
    """Yield clients, API Gateway and the authorizer."""
    clients = "llama-stack-client, OpenAI SDKs, agent frameworks, browsers"
    gateway, checks = QUARTERS.x(3) - QUARTERS.gap - PAGE.left, QUARTERS.x(3)
    middle = PAGE.left + gateway / 2
    yield from Box(PAGE.left, 20, PAGE.width, 62, "Clients", clients).lines()
    yield arrow(middle, 83, middle, 119)
    yield words(middle + 14, 106, "HTTPS, server-sent events", "note")
    yield from Box(PAGE.left, 120, gateway, 62, "API Gateway", "REST, response streaming").lines()
    yield from Box(checks, 120, PAGE.right - checks, 62, "authorizer", CAPTIONS["authorizer"]).lines()
    yield arrow(*QUARTERS.gap_before(3, 151))
    yield arrow(middle, 183, middle, 219)


def draw_functions(functions: dict[str, Function], services: set[str]) -> Iterator[str]:
    """Yield the functions with routes, those that send work first, and the functions without, with their services."""
    top = 220
    yield rectangle(PAGE.left, top, PAGE.width, 378, "group")
    yield words(QUARTERS.left, top + 29, "Lambda functions", "name")
    yield rectangle(QUARTERS.x(2) + 94, top + 17, 14, 14, "stream", 3)
    yield words(QUARTERS.x(2) + 116, top + 29, "streams its responses", "note")
    routed = sorted(
        (each for each in functions.values() if each.has_routes),
        key=lambda each: (not each.sends_work, not each.streams),
    )
    lines, more = divmod(len(routed), QUARTERS.columns)
    for number, each in enumerate(routed):
        line, place = divmod(number, QUARTERS.columns)
        place += (QUARTERS.columns - more) if line == lines else 0  # to the right: the arrow begins above the left cell
        yield from cell(
            place, top + 46 + 76 * line, each.name, CAPTIONS[each.name], "stream" if each.streams else "part"
        )
    y = top + 300
    yield arrow(QUARTERS.middle(0), top + 183, QUARTERS.middle(0), y - 1)
    yield words(QUARTERS.middle(0) + 14, y - 17, "background responses, files, deletions", "note")
    for place, name in ((1, "worker"), (3, "sandbox")):
        yield from cell(place, y, name, CAPTIONS[name], "part")
    for place, kind in ((0, "AWS::SQS::Queue"), (2, "AWS::Events::EventBus")):
        if kind in services:
            yield from cell(place, y, *SERVICES[kind], "service")
    yield arrow(*QUARTERS.gap_before(1, y + 30))
    yield arrow(*QUARTERS.gap_before(2, y + 30), both=True)


def draw_neighbours(services: set[str]) -> Iterator[str]:
    """Yield what the functions use: the services that store, models and tools."""
    stored = [SERVICES[kind] for kind in SERVICES if kind in services][:3]
    models = [
        ("Amazon Bedrock", "and its guardrails"),
        ("OpenAI", "chat, responses, images"),
        ("Other servers", "vLLM, Ollama, ..."),
    ]
    tools = [
        ("MCP servers", "over HTTP"),
        ("HTTP endpoints", "and web search"),
        ("Lambda functions", "in your account"),
    ]
    for number, (title, parts) in enumerate((("Storage", stored), ("Models", models), ("Tools", tools))):
        middle = THIRDS.middle(number)
        yield arrow(middle, 599, middle, 631)
        yield rectangle(THIRDS.x(number), 632, THIRDS.width, 172, "group")
        yield words(middle, 657, title, "name middle")
        for place, (name, note) in enumerate(parts):
            yield words(middle, 684 + 42 * place, name, "middle")
            yield words(middle, 701 + 42 * place, note, "note middle")


def cell(column: int, y: float, name: str, note: str, kind: str) -> Iterator[str]:
    yield from Box(QUARTERS.x(column), y, QUARTERS.width, 60, name, note, kind).lines()


def rectangle(x: float, y: float, width: float, height: float, kind: str, radius: int = 8) -> str:
    return f'<rect class="{kind}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="{radius}"/>'


def words(x: float, y: float, text: str, kind: str) -> str:
    return f'<text class="{kind}" x="{x:g}" y="{y:g}">{escape(text)}</text>'


def arrow(x1: float, y1: float, x2: float, y2: float, *, both: bool = False) -> str:
    start = ' marker-start="url(#head)"' if both else ""
    return f'<path class="line" d="M{x1:g} {y1:g} {x2:g} {y2:g}"{start} marker-end="url(#head)"/>'
