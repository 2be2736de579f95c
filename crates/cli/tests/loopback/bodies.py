"""A server that compresses answers as it is asked to, and reads forms with a parser that is not ours."""

import email.parser
import email.policy
import gzip
import http.server
import json
import zlib


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, content, coding=None):
        self.send_response(200)
        self.send_header("content-length", str(len(content)))
        if coding:
            self.send_header("content-encoding", coding)
        self.end_headers()
        self.wfile.write(content)

    def do_GET(self):
        content = json.dumps({"token": f"t{self.path}", "path": self.path}).encode()
        asked = "gzip" in self.headers.get("accept-encoding", "")
        if asked and self.path.startswith("/gzip"):
            self.answer(gzip.compress(content), "gzip")
        elif asked and self.path.startswith("/deflate"):
            self.answer(zlib.compress(content), "deflate")
        elif asked and self.path.startswith("/broken"):
            self.answer(gzip.compress(content)[:-9], "gzip")
        else:
            self.answer(content)

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        head = f"Content-Type: {self.headers['content-type']}\r\n\r\n".encode()
        form = email.parser.BytesParser(policy=email.policy.HTTP).parsebytes(head + body)
        parts = []
        for part in form.iter_parts():
            content = part.get_payload(decode=True)
            parts.append({
                "name": part.get_param("name", header="content-disposition"),
                "filename": part.get_filename(),
                "type": part.get("content-type"),
                "content": content.decode("latin-1"),
            })
        self.answer(json.dumps(parts).encode())

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(f"listening on {server.server_address[1]}", flush=True)
server.serve_forever()
