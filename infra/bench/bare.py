"""Baseline of the cold starts: FastAPI on uvicorn with a DynamoDB client, and nothing else."""

import os

import boto3
from fastapi import FastAPI

app = FastAPI()
client = boto3.client("dynamodb")


@app.get("/")
def read() -> dict[str, bool]:
    """Read one record that does not exist."""
    answer = client.get_item(TableName=os.environ["STINT_TABLE"], Key={"pk": {"S": "none"}, "sk": {"S": "none"}})
    return {"found": "Item" in answer}
