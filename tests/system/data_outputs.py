"""What the data stack gives to the template, where nobody looks behind the names."""

OUTPUTS = {
    "TableName": "table",
    "BucketName": "bucket",
    "WorkQueueUrl": "http://127.0.0.1:9/000000000000/work",
    "WorkQueueArn": "arn:aws:sqs:us-east-1:000000000000:work",
    "WorkerFailuresArn": "arn:aws:sqs:us-east-1:000000000000:failures",
}
