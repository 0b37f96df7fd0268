"""Placeholder outputs of the data stack."""

OUTPUTS = {
    "TableName": "table",
    "KeysTableName": "keys",
    "KeysTableArn": "arn:aws:dynamodb:us-east-1:000000000000:table/keys",
    "BucketName": "bucket",
    "VectorBucketName": "vectors",
    "WorkQueueUrl": "http://127.0.0.1:9/000000000000/work",
    "WorkQueueArn": "arn:aws:sqs:us-east-1:000000000000:work",
    "WorkerFailuresUrl": "http://127.0.0.1:9/000000000000/failures",
    "WorkerFailuresArn": "arn:aws:sqs:us-east-1:000000000000:failures",
}
