"""A server that compresses answers as it is asked to, reads forms with a parser that is not ours, and asks for
passwords by Digest authentication."""

import email.parser
import email.policy
import gzip
import hashlib
import http.server
import json
import secrets
import urllib.request
import zlib

NONCES = set()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, content, coding=None):
        self.send_response(200)
        self.send_header("content-length", str(len(content)))
        if coding:
            self.send_header("content-encoding", coding)
        self.end_headers()
        self.wfile.write(content)

    def is_known(self):
        """Checks credentials by RFC 7616; each nonce is good once."""
        kind, _, parameters = self.headers.get("authorization", "").partition(" ")
        if kind != "Digest":
            return False
        given = urllib.request.parse_keqv_list(urllib.request.parse_http_list(parameters))
        if given["nonce"] not in NONCES or given["uri"] != self.path:
            return False
        NONCES.remove(given["nonce"])
        name = given["algorithm"]
        of = lambda text: hashlib.new(name.removesuffix("-sess").replace("-", "").lower(), text.encode()).hexdigest()
        secret = of("me:the shop:pass, word")
        if name.endswith("-sess"):
            secret = of(f"{secret}:{given['nonce']}:{given['cnonce']}")
        middle = ":".join(given[key] for key in ("nonce", "nc", "cnonce", "qop"))
        return given["response"] == of(f"{secret}:{middle}:{of(f'{self.command}:{self.path}')}")

    def challenge(self, algorithm):
        nonce = secrets.token_hex()
        NONCES.add(nonce)
        value = f'Digest realm="the shop", qop="auth", algorithm={algorithm}, nonce="{nonce}", opaque="o"'
        self.send_response(401)
        self.send_header("www-authenticate", value)
        self.send_header("content-length", "0")
        self.end_headers()

    def do_GET(self):
        if self.path.startswith("/private/") and not self.is_known():
            self.challenge(self.path.split("/")[2].split("?")[0])
            return
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
