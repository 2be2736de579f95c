"""A server of HTTP that logs the traces of its requests; prints its port first.

Each line of the log, the first argument, is the header `traceparent` of a request and its path, which says
how long the request is kept and whether it fails. A response that was kept says so.
"""

import http.server
import sys
import threading
import time

KEPT = {"/slow": 0.06, "/fail": 0.03}


class Traced(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    lock = threading.Lock()

    def do_GET(self):
        kept = KEPT.get(self.path, 0)
        time.sleep(kept)
        with self.lock, open(sys.argv[1], "a", encoding="utf-8") as log:
            log.write(f"{self.headers['traceparent']} {self.path}\n")
        self.send_response(500 if self.path == "/fail" else 200)
        self.send_header("content-length", "0")
        if kept:
            self.send_header("Server-Timing", f'db;dur={kept * 1000};desc="the shard"')
            self.send_header("server-timing", "miss")
        self.end_headers()

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Traced)
print(server.server_port)
server.serve_forever()
