"""The HTTP/1.1 client of the product (RFC 9112): to DynamoDB and other services of AWS, model servers and Lambda.

  parser       bytes of a response to a head and a body, without I/O
  connection   one request at a time over asyncio, with its timeouts
  connector    opens connections: names, TLS, proxies
  proxies      the proxies of the environment
  pool         keeps connections for each event loop
  urls         where to connect, and what to ask for
  client       requests to URLs

It follows no redirects, and sends no credentials that it was not given. What callers choose, such as the URLs of
images, is fetched by httpx, with the checks of `stint.net`.
"""
