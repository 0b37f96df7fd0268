"""Prints the webhooks that it gets, after it has verified them with the secret in OPENAI_WEBHOOK_SECRET."""

import os
from http.server import BaseHTTPRequestHandler, HTTPServer

from openai import InvalidWebhookSignatureError, OpenAI

client = OpenAI(api_key=os.environ.get("STINT_API_KEY", "none"))


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        try:
            event = client.webhooks.unwrap(body, dict(self.headers))
        except InvalidWebhookSignatureError:
            self.send_error(400)
            return
        print(event.type, event.data.id, flush=True)
        self.send_response(204)
        self.end_headers()


HTTPServer(("127.0.0.1", 8000), Receiver).serve_forever()
