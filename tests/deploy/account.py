"""An AWS account on this machine: the local engine with every service, to which the SAM CLI deploys.

What a stack has created is read from the engine. A resource of a nested stack is named with the logical ids of both,
such as `Data/Table`.
"""

import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError
from infra.local.engine import ROOT, Engine
from infra.scripts.deploy import deploy_command

NESTED = "AWS::CloudFormation::Stack"
SAM_STACK = "aws-sam-cli-managed-default"
UPLOAD = re.compile(r"aws-sam-cli-managed-default-[a-z0-9-]+/([\w./-]+)")


class DeploymentEngine(Engine):
    """The engine with all its services, which runs functions as processes. It creates no data resources itself."""

    python = ROOT / ".venv-deploy" / "bin" / "python"
    program = "tests.deploy.engine_process"

    @property
    def log(self) -> str:
        return (self._folder / "engine.log").read_text(errors="replace")

    def _settings(self, port: int) -> dict[str, str]:
        settings = super()._settings(port)
        del settings["SERVICES"]
        return settings | {"LAMBDA_EXECUTOR": "local", "PATH": os.defpath}

    def _hold_data_resources(self) -> dict[str, str]:
        return {}


@dataclass(frozen=True)
class Resource:
    """A resource that a stack has created."""

    type: str
    physical_id: str


class Account:
    """The engine as an AWS account. `home` is the home folder of the programs that use it."""

    def __init__(self, engine: DeploymentEngine, home: Path) -> None:
        self.engine = engine
        self._home = home
        self.cloudformation = engine.running.client("cloudformation")
        self.functions = engine.running.client("lambda")
        self.dynamodb = engine.running.client("dynamodb")
        self.s3 = engine.running.client("s3")

    def close(self) -> None:
        for client in (self.cloudformation, self.functions, self.dynamodb, self.s3):
            client.close()

    def environment(self) -> dict[str, str]:
        """Return the environment of a program that uses this account, and nothing of this machine's own settings."""
        own = {"PATH": os.environ["PATH"], "HOME": str(self._home), "SAM_CLI_TELEMETRY": "0", "NO_PROXY": "127.0.0.1"}
        return own | self.engine.environment() | {"AWS_ENDPOINT_URL": self.engine.endpoint}

    def run(self, command: list[str], **variables: str) -> str:
        """Run a program and return its output. Its errors are in the exception."""
        environment = self.environment() | variables
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            reasons = "\n".join([*self.failures(), done.stderr[-1000:]])
            raise AssertionError(f"{command} failed with {done.returncode}:\n{reasons}")
        return done.stdout

    def deploy(self, stack: str, project: Path, parameters: str) -> None:
        """Run what `make deploy STACK=... PARAMETERS=...` runs in a project."""
        variables = {"STACK": stack, "PARAMETERS": parameters, "AWS_REGION": self.engine.region}
        command = deploy_command(variables, project, self.parameters_of)
        self.run(["env", "--chdir", str(project), *command])

    def parameters_of(self, stack: str, _: str) -> dict[str, str]:
        """Return the parameters of a stack; none if there is no such stack."""
        try:
            [found] = self.cloudformation.describe_stacks(StackName=stack)["Stacks"]
        except ClientError:
            return {}
        return {each["ParameterKey"]: each["ParameterValue"] for each in found.get("Parameters", [])}

    def delete(self, stack: str) -> None:
        """Delete a stack, and wait for the end."""
        self.cloudformation.delete_stack(StackName=stack)
        waiter = self.cloudformation.get_waiter("stack_delete_complete")
        waiter.wait(StackName=stack, WaiterConfig={"Delay": 1})

    def sam_delete(self, stack: str) -> None:
        """Delete a stack as docs/production.md says."""
        sam = str(ROOT / ".venv-sam" / "bin" / "sam")
        self.run([sam, "delete", "--stack-name", stack, "--no-prompts", "--region", self.engine.region])

    def failures(self) -> list[str]:
        """Return what failed in a stack, for messages."""
        stacks = self.cloudformation.list_stacks()["StackSummaries"]
        events = [self.cloudformation.describe_stack_events(StackName=each["StackId"]) for each in stacks]
        failed = (event for found in events for event in found["StackEvents"] if "FAILED" in event["ResourceStatus"])
        return [f"{each['StackName']}: {each['LogicalResourceId']}: {each['ResourceStatusReason']}" for each in failed]

    def status(self, stack: str) -> str:
        (found,) = self.cloudformation.describe_stacks(StackName=stack)["Stacks"]
        return str(found["StackStatus"])

    def stack_id(self, stack: str) -> str:
        """Return the id of a stack, which names it also when it is deleted."""
        (found,) = self.cloudformation.describe_stacks(StackName=stack)["Stacks"]
        return str(found["StackId"])

    def outputs(self, stack: str) -> dict[str, str]:
        (found,) = self.cloudformation.describe_stacks(StackName=stack)["Stacks"]
        return {output["OutputKey"]: output["OutputValue"] for output in found["Outputs"]}

    def parameters(self, stack: str) -> dict[str, str]:
        (found,) = self.cloudformation.describe_stacks(StackName=stack)["Stacks"]
        return {each["ParameterKey"]: each["ParameterValue"] for each in found["Parameters"]}

    def resources(self, stack: str) -> dict[str, Resource]:
        """Return the resources of a stack and of its nested stacks."""
        found = {}
        pages = self.cloudformation.get_paginator("list_stack_resources").paginate(StackName=stack)
        for each in (each for page in pages for each in page["StackResourceSummaries"]):
            name, resource = each["LogicalResourceId"], Resource(each["ResourceType"], each["PhysicalResourceId"])
            found[name] = resource
            if resource.type == NESTED:
                nested = self.resources(resource.physical_id)
                found |= {f"{name}/{inner}": inside for inner, inside in nested.items()}
        return found

    def invoke(self, function: str, event: bytes) -> tuple[bytes, str | None]:
        """Run a function in the engine, and return its answer and the kind of its error."""
        answer = self.functions.invoke(FunctionName=function, Payload=event)
        return answer["Payload"].read(), answer.get("FunctionError")

    def processed_template(self, stack: str) -> dict[str, Any]:
        """Return the template of a stack after its transforms."""
        template: dict[str, Any] = self.cloudformation.get_template(StackName=stack, TemplateStage="Processed")[
            "TemplateBody"
        ]
        return template

    def uploads(self, stack: str) -> set[str]:
        """Return the keys of the objects that the SAM CLI uploaded for the template of a stack."""
        template = self.cloudformation.get_template(StackName=stack, TemplateStage="Original")["TemplateBody"]
        return set(UPLOAD.findall(template))

    def uploaded(self) -> set[str]:
        """Return the keys of all objects in the bucket of the SAM CLI."""
        bucket = self.outputs(SAM_STACK)["SourceBucket"]
        return set(self.objects(bucket))

    def names_of(self, service: str, operation: str, members: str, name: str = "") -> set[str]:
        """Return the names of what a list operation of a service returns."""
        client = self.engine.running.client(service)
        try:
            listed = getattr(client, operation)().get(members, [])
            return {each[name] if name else each for each in listed}
        finally:
            client.close()

    def skipped(self, stack_id: str) -> set[str]:
        """Return the resources that the deletion of a stack kept."""
        events = self.cloudformation.describe_stack_events(StackName=stack_id)["StackEvents"]
        return {event["LogicalResourceId"] for event in events if event["ResourceStatus"] == "DELETE_SKIPPED"}

    def items(self, table: str) -> list[dict[str, Any]]:
        """Return all items of a table, in order."""
        pages = self.dynamodb.get_paginator("scan").paginate(TableName=table)
        return sorted(
            (item for page in pages for item in page["Items"]), key=lambda item: (item["pk"]["S"], item["sk"]["S"])
        )

    def objects(self, bucket: str) -> Mapping[str, str]:
        """Return the ETags of a bucket's objects by their keys."""
        pages = self.s3.get_paginator("list_objects_v2").paginate(Bucket=bucket)
        return {each["Key"]: each["ETag"] for page in pages for each in page.get("Contents", [])}
