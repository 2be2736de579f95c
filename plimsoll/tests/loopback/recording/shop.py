"""A shop for browsers, in which every value is good for one session only.

    shop.py [CERTIFICATE KEY]

A form with a token against forgery, a page with its configuration within a script, and items that are created, read
and deleted by their ids, one request after the head of another. It prints its port; `GET /counts` has how many items
were created, read, deleted and left, and every request that it refused.
"""

import http.server
import json
import secrets
import ssl
import sys
import threading
import time
import urllib.parse

LOGIN = """<!doctype html><title>login</title><link rel=icon href=data:,>
<form method=post action=/login><input name=user value=ann><input type=hidden name=csrf value="%s"></form>
<script>addEventListener('load', () => document.forms[0].submit())</script>"""

APP = """<!doctype html><title>begun</title><link rel=icon href=data:,>
<script>window.__CFG__={"build":"%s","apiToken":"%s","nonce":"%s","since":%d}</script>
<script>
const { apiToken, nonce } = window.__CFG__;
const headers = { authorization: `Bearer ${apiToken}`, 'x-nonce': nonce, 'content-type': 'application/json' };
const call = (method, path, body) => fetch(path, { method, headers, body: body && JSON.stringify(body) });
addEventListener('load', async () => {
  const { id } = await (await call('POST', '/api/items', { name: 'book', nonce })).json();
  // Both heads are awaited, and no body.
  const [one, all] = await Promise.all([call('GET', `/api/items/${id}`), call('GET', '/api/items')]);
  const gone = await call('DELETE', `/api/items/${id}`);
  document.title = one.ok && all.ok && gone.ok ? 'done' : 'failed';
});
</script>"""


class Shop(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    lock = threading.Lock()
    forms, sessions, keys, items, refused = {}, set(), {}, {}, []
    counts = {"created": 0, "read": 0, "deleted": 0}

    def log_message(self, *_):
        pass

    def cookie(self, name):
        pairs = (pair.strip().partition("=") for pair in self.headers.get("cookie", "").split(";"))
        return next((value for known, _, value in pairs if known == name), None)

    def answer(self, status, body=b"", kind="application/json", slow=False, **fields):
        if status == 403:
            self.refused.append(f"{self.command} {self.path}")
        self.send_response(status)
        for name, value in fields.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        if slow:
            self.wfile.flush()
            time.sleep(0.05)
        self.wfile.write(body)

    def page(self, text, **fields):
        self.answer(200, text.encode(), "text/html", **fields)

    def handle_one(self):
        body = self.rfile.read(int(self.headers.get("content-length") or 0)).decode()
        if (self.command, self.path) == ("GET", "/"):
            visit, form = secrets.token_hex(8), secrets.token_urlsafe(24)
            self.forms[visit] = form
            return self.page(LOGIN % form, set_cookie=f"visit={visit}; Path=/")
        if (self.command, self.path) == ("POST", "/login"):
            sent = urllib.parse.parse_qs(body).get("csrf", [None])[0]
            if sent is None or self.forms.pop(self.cookie("visit"), None) != sent:
                return self.answer(403)
            session = secrets.token_hex(16)
            self.sessions.add(session)
            return self.answer(302, location="/app", set_cookie=f"session={session}; Path=/; HttpOnly")
        if (self.command, self.path) == ("GET", "/counts"):
            counts = {**self.counts, "left": len(self.items), "refused": self.refused}
            return self.answer(200, json.dumps(counts).encode())
        session = self.cookie("session")
        if session not in self.sessions:
            return self.answer(403)
        if (self.command, self.path) == ("GET", "/app"):
            token, nonce = secrets.token_hex(16), secrets.token_urlsafe(12)
            self.keys[token] = (session, nonce)
            return self.page(APP % (secrets.token_hex(4), token, nonce, time.time() * 1000))
        token = self.headers.get("authorization", "").removeprefix("Bearer ")
        if self.keys.get(token) != (session, self.headers.get("x-nonce")):
            return self.answer(403)
        if (self.command, self.path) == ("POST", "/api/items"):
            if json.loads(body).get("nonce") != self.keys[token][1]:
                return self.answer(403)
            item = secrets.token_hex(6)
            self.items[item] = token
            self.counts["created"] += 1
            return self.answer(201, json.dumps({"id": item, "version": secrets.token_hex(4)}).encode())
        if (self.command, self.path) == ("GET", "/api/items"):
            mine = [item for item, owner in self.items.items() if owner == token]
            return self.answer(200, json.dumps(mine).encode(), slow=True)
        item = self.path.removeprefix("/api/items/")
        if self.items.get(item) != token:
            return self.answer(403)
        if self.command == "DELETE":
            del self.items[item]
            self.counts["deleted"] += 1
            return self.answer(204)
        self.counts["read"] += 1
        return self.answer(200, json.dumps({"id": item}).encode(), slow=True)

    do_GET = do_POST = do_DELETE = handle_one


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Shop)
if len(sys.argv) > 2:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[1], sys.argv[2])
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
print(server.server_address[1], flush=True)
server.serve_forever()
