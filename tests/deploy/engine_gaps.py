"""Gaps of the local engine: things that it cannot create or run, each with its reason.

`test_engine_gaps.py` fails for an entry that is no longer true, so the list only shrinks: with a new version of the
engine, remove the entry, and the code that avoids the gap.
"""

UNKNOWN_TYPES = {
    "AWS::Events::EventBusPolicy": "refused as an unrecognized type, so the deployed template has no policies of buses",
    "AWS::S3Vectors::VectorBucket": "refused as an unrecognized type, so the stacks have VectorIndex=packed",
}
"""Types of resources that the engine's CloudFormation refuses."""

ANY_METHOD = "its API Gateway ignores x-amazon-apigateway-any-method, so infra/local serves the deployed routes"
EXEC_WRAPPER = "it ignores AWS_LAMBDA_EXEC_WRAPPER, so streaming functions run behind the Runtime API of infra/local"
NESTED_ATTRIBUTES = (
    "an update of a nested stack fails, because the engine forgets the attributes of its unchanged resources, so "
    "engine_process.py keeps them"
)
NESTED_NAMES = (
    "a resource of a nested stack that is created after a bucket gets a name that its update does not find, and is "
    "replaced, so engine_process.py names it without the bucket's random part"
)
NEW_API = (
    "it makes another API if the Body of one changes, with new permissions to invoke its functions, whereas "
    "CloudFormation imports the Body into the same API (AWS::ApiGateway::RestApi, 'Update requires: No interruption')"
)
CONDITIONS = "conditions with Fn::Sub and Fn::Split fail, so engine_process.py resolves these functions"
METRIC_MATH = "it refuses alarms with Metrics, which all alarms have, so the stacks have no AlarmTopicArn"
SAM_DELETE = (
    "the SAM CLI does not accept URLs of nested templates that name the engine, so CloudFormation deletes stacks"
)
QUEUE_POLLER = "its poller fails on a MaximumConcurrency from a parameter, which is text, so tests invoke the worker"
