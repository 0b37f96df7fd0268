"""Responses as documented by Wolfram|Alpha (products.wolframalpha.com/api/documentation), with output=json."""

import json
from urllib.parse import parse_qs, urlsplit

from tests.servers.scripted_http import Received, Reply

APP_ID = "RIGHT-APPID"
HEAD = {"error": False, "numpods": 3, "datatypes": "Math", "timedout": "", "timing": 0.8, "parsetiming": 0.2} | {
    "parsetimedout": False,
    "recalculate": "",
    "id": "MSP1",
    "host": "https://www6b3.wolframalpha.com",
    "server": "3",
    "related": "https://www6b3.wolframalpha.com/related",
    "version": "2.6",
}


def pod(title: str, text: str) -> dict[str, object]:
    about = {"scanner": "Identity", "id": title, "position": 100, "error": False, "numsubpods": 1, "states": []}
    return {"title": title, **about, "subpods": [{"title": "", "plaintext": text}], "expressiontypes": {}}


def answer(received: Received) -> Reply:
    """Respond to GET /v2/query."""
    query = {name: values[0] for name, values in parse_qs(urlsplit(received.path).query).items()}
    if query.get("appid") != APP_ID:
        return reply({"success": False, "error": {"code": "1", "msg": "Invalid appid"}, "numpods": 0})
    assert (query["format"], query["output"]) == ("plaintext", "json")
    match query["input"]:
        case "1+1":
            pods = [pod("Input", "1 + 1"), pod("Result", "2"), pod("Number line", "")]
            return reply(
                {**HEAD, "success": True, "inputstring": "1+1", "pods": pods, "assumptions": {"type": "Clash"}}
            )
        case "fail":
            return reply({**HEAD, "success": False, "error": {"code": "1000", "msg": "Internal failure"}})
        case text:
            hint = {"score": "0.4", "level": "medium", "val": "integrate"}
            return reply({**HEAD, "success": False, "inputstring": text, "didyoumeans": hint})


def reply(result: dict[str, object]) -> Reply:
    return Reply((json.dumps({"queryresult": result}).encode(),), headers={"Content-Type": "application/json"})
