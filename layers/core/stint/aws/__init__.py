"""Client of DynamoDB for asyncio. It needs neither botocore nor a thread.

botocore takes 0.4 s of CPU time until its first call, and a millisecond for each further one: most of what a small
function has. So the path of every request has its own client, and rarer services stay with botocore.

  dynamodb.py      one call: its attempts, what each error means for the next one, and DynamoDB's JSON
  pool.py          connections by event loop; connection.py has one of them, connector.py opens it
  http1.py         the parser of responses
  credentials.py   credentials that are refreshed before they expire; credentials_chain.py has their sources
  signature.py     the signature of a request, and the clock that it is made with
  retries.py       backoff and quota, as in AWS's SDKs

docs/decisions.md, entry 62, has the reasons.
"""
