"""Authorizer whose result is the JSON in the Authorization header. It counts its invocations in a file."""

import json
import os
from pathlib import Path
from typing import Any


def handler(event: dict[str, Any], context: object) -> Any:
    with (Path(os.environ["STINT_MARK_FOLDER"]) / "authorizations").open("a") as calls:
        calls.write(json.dumps(event) + "\n")
    asked = json.loads(event["headers"]["authorization"])
    if "raise" in asked:
        raise RuntimeError(asked["raise"])
    if "result" in asked:
        return asked["result"]
    stage = event["methodArn"].split("/")[:2]
    resources = ["/".join([*stage, path]) for path in asked["paths"]]
    statement = {"Action": "execute-api:Invoke", "Effect": asked.get("effect", "Allow"), "Resource": resources}
    policy = {"Version": "2012-10-17", "Statement": [statement]}
    return {"principalId": "someone", "policyDocument": policy, "context": asked.get("context", {})}
