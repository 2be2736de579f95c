"""A node with the products of Lithair: a bulk, or a create without a price, is answered by 503, and so is every
write after it, as lithair-core 1.21 does in a cluster. Arguments: port, data folder, and `mute` for one that takes
no writes after it was started again, `nameless` for one whose answers have no id, `list=PATH` for another list,
`id=N leader=FILE` for one of several of which the file names the leader, `takes-over` for one that leads from its
first bad write on."""

import json
import os
import sys
import threading
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlparse

PORT, FOLDER = int(sys.argv[1]), sys.argv[2]
FILE = os.path.join(FOLDER, "items.json")
STARTED_AGAIN = os.path.exists(os.path.join(FOLDER, "started"))
OPTIONS = dict(argument.split("=", 1) for argument in sys.argv[3:] if "=" in argument)
LIST = OPTIONS.get("list", "/api/products")

items = json.load(open(FILE)) if os.path.exists(FILE) else {}
writing = threading.Lock()
state = {"poisoned": STARTED_AGAIN and "mute" in sys.argv}
open(os.path.join(FOLDER, "started"), "w").close()


class Node(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, body=None):
        text = b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def refuse(self):
        self.answer(503, {"error": "Replication failed"})

    def do_GET(self):
        url = urlparse(self.path)
        query = {name: int(values[0]) for name, values in parse_qs(url.query).items()}
        rest = url.path[len(LIST) + 1 :]
        if url.path == LIST:
            skip = query.get("skip", 0)
            page = list(items.values())[skip : skip + query.get("take", 1000)]
            self.answer(200, {"data": page, "total": len(items)})
        elif url.path == "/raft/leader":
            self.answer(200, {"leader_id": open(OPTIONS["leader"]).read().strip()})
        elif rest == "count":
            self.answer(200, {"count": len(items)})
        elif rest in items:
            self.answer(200, items[rest])
        else:
            self.answer(200 if url.path == "/status" else 404, {"status": "ready"})

    def do_POST(self):
        item = json.loads(self.rfile.read(int(self.headers["content-length"])))
        with writing:
            state["poisoned"] |= self.path.endswith("_bulk") or "price" not in item
            if state["poisoned"] and "takes-over" in sys.argv:
                with open(OPTIONS["leader"] + ".new", "w") as file:
                    file.write(OPTIONS["id"])
                os.replace(OPTIONS["leader"] + ".new", OPTIONS["leader"])
            if state["poisoned"]:
                return self.refuse()
            item["id"] = str(uuid.uuid4())
            items[item["id"]] = item
            self.keep()
        self.answer(201, {} if "nameless" in sys.argv else item)

    def do_DELETE(self):
        with writing:
            if state["poisoned"]:
                return self.refuse()
            items.pop(self.path[len(LIST) + 1 :], None)
            self.keep()
        self.answer(204)

    def keep(self):
        with open(FILE + ".new", "w") as file:
            json.dump(items, file)
        os.replace(FILE + ".new", FILE)


ThreadingHTTPServer(("127.0.0.1", PORT), Node).serve_forever()
