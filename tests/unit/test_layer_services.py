"""The dependencies layer keeps botocore's description of every service that is called."""

import re
from pathlib import Path

LAYERS = Path(__file__).parents[2] / "layers"
# aws_lambda_powertools makes this client.
UNSEEN = {"secretsmanager"}


def test_every_service_that_the_package_calls_is_shipped() -> None:
    files = [
        path for path in (LAYERS / "core").rglob("*.py") if "cli" not in path.parts
    ]  # runs where boto3 is complete
    source = "\n".join(path.read_text() for path in files)
    called = set(re.findall(r'(?:create_client|\bclient|\b_make)\(\s*"([a-z0-9-]+)"', source))
    listed = re.search(r"^services := (.+)$", (LAYERS / "Makefile").read_text(), re.MULTILINE)

    assert {"bedrock-runtime", "lambda", "s3"} <= called
    assert listed
    assert called | UNSEEN <= set(listed[1].split())
