"""Clients of DynamoDB and of S3's reads for asyncio. They need neither botocore nor a thread.

botocore takes 0.4 s of CPU time until its first call, and a millisecond for each further one: most of what a small
function has. So the path of every request has its own clients, and rarer services stay with botocore.

  service_client.py   one call: its attempts, and what each error means for the next one
  dynamodb.py         DynamoDB's requests and JSON; s3_reader.py has the reads of objects
  credentials.py      credentials that are refreshed before they expire; credentials_chain.py has their sources
  signature.py        the signature of a request, and the clock that it is made with
  retries.py          backoff and quota, as in AWS's SDKs

`stint.http1` has the connections.

docs/decisions.md, entry 66, has the reasons.
"""
