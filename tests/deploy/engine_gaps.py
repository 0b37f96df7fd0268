"""What the local engine cannot create or run, each with its reason. `test_engine_gaps.py` fails for an entry that is no
longer true, so the lists only shrink: with a new version of the engine, remove the entry, and what avoids it.
"""

UNKNOWN_TYPES = {
    "AWS::Events::EventBusPolicy": "refused as an unrecognized type, so the deployed template has no policies of buses",
    "AWS::S3Vectors::VectorBucket": "refused as an unrecognized type, so the stacks have VectorIndex=packed",
}
"""Types of resources that the engine's CloudFormation refuses."""

ANY_METHOD = "its API Gateway ignores x-amazon-apigateway-any-method, so infra/local serves the deployed routes"
EXEC_WRAPPER = "it ignores AWS_LAMBDA_EXEC_WRAPPER, so streaming functions run behind the Runtime API of infra/local"
METRIC_MATH = "it refuses alarms with Metrics, which all alarms have, so the stacks have no AlarmTopicArn"
SAM_DELETE = (
    "the SAM CLI does not accept URLs of nested templates that name the engine, so CloudFormation deletes stacks"
)
QUEUE_POLLER = "its poller of queues fails on the number of a RedrivePolicy or MaximumConcurrency that is a parameter"
