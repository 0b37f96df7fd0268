"""Prints the names of the spans that it gets, at the port of an OpenTelemetry collector."""

import json
from http.server import BaseHTTPRequestHandler, HTTPServer


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        trace = json.loads(self.rfile.read(int(self.headers["content-length"])))
        for resource in trace["resourceSpans"]:
            for scope in resource["scopeSpans"]:
                for span in scope["spans"]:
                    print(span["name"], flush=True)
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Print no line for each request."""


HTTPServer(("127.0.0.1", 4318), Receiver).serve_forever()
