"""Client of DynamoDB for asyncio. It needs neither botocore nor a thread."""
