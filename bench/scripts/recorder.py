"""A server that keeps what it is asked, and the comparison of two tools by it: for k6.py and locust.py."""

import http.server
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable

# What every response says: the scripts take their values from it.
ANSWER = {
    "token": "t-0",
    "id": 7,
    "user": {"name": "Ann"},
    "items": [{"id": 1}, {"id": 2}],
    "next": "/next/1",
}
# The connection's own headers, and those that name the program.
IGNORED = {"host", "user-agent", "content-length", "connection", "accept-encoding", "traceparent"}
KINDS = [
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}"), "UUID"),
    (re.compile(r"(random=)[^&]+"), r"\1RANDOM"),
    (re.compile(r'("random":)"[^"]+"'), r'\1"RANDOM"'),
    (re.compile(r"^(x-random: ).+"), r"\1RANDOM"),
    (re.compile(r"(t=)\d{13}"), r"\1TIME"),
]


def kinds(text: str) -> str:
    for pattern, kind in KINDS:
        text = pattern.sub(kind, text)
    return text


class Recorder(http.server.ThreadingHTTPServer):
    """Keeps what is asked, in the order in which requests arrive."""

    daemon_threads = True

    def __init__(self) -> None:
        self.requests: list[list[str]] = []
        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def take(self) -> list[list[str]]:
        taken, self.requests = self.requests, []
        return taken


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0)).decode(errors="replace")
        if self.path == "/__begin":
            self.server.requests = []
        else:
            headers = [f"{name.lower()}: {value}" for name, value in self.headers.items()]
            kept = sorted(header for header in headers if header.split(":")[0] not in IGNORED)
            self.server.requests.append([kinds(line) for line in [f"{self.command} {self.path}", *kept, body]])
        reply = json.dumps(ANSWER, separators=(",", ":")).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(reply)))
        self.send_header("x-trace", "trace-1")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(reply)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = do_OPTIONS = do_PURGE = answer

    def log_message(self, *_: object) -> None:
        pass


def shown(requests: list[list[str]]) -> str:
    return "".join("\n".join(line for line in request if line) + "\n\n" for request in requests)


def of_plan(program: str, script: pathlib.Path, words: list[str], server: Recorder) -> list[list[str]]:
    """What the plan asks when each scenario is carried out once. `words` are those of the import."""
    plan = script.with_suffix(".yaml")
    imported = subprocess.run([program, "import", *words, str(script)], capture_output=True, text=True)
    if imported.returncode != 0:
        sys.exit(f"import of {script.name}:\n{imported.stderr}")
    plan.write_text(imported.stdout)
    for command in ("check", "try"):
        server.take()
        run = subprocess.run([program, command, str(plan)], capture_output=True, text=True, timeout=120)
        if run.returncode != 0:
            sys.exit(f"{command} of {script.name} ended with {run.returncode}:\n{run.stdout}{run.stderr}{plan.read_text()}")
    return server.take()


def of_both(
    script: pathlib.Path, endings: list[str], server: Recorder, *sides: Callable[[pathlib.Path], list[list[str]]]
) -> list[list[list[str]]]:
    """What each side asks by a copy of the script whose folder names the recorder as the server."""
    taken = []
    for side in sides:
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name) / "scripts"
            shutil.copytree(script.parent, folder, ignore=shutil.ignore_patterns("__pycache__"))
            for path in [path for ending in endings for path in folder.rglob(f"*.{ending}")]:
                path.write_text(path.read_text().replace("127.0.0.1:8080", f"127.0.0.1:{server.server_port}"))
            requests = side(folder / script.name)
        taken.append(json.loads(json.dumps(requests).replace(f":{server.server_port}", ":8080")))
    return taken


def is_same(tool: str, script: pathlib.Path, theirs: list[list[str]], ours: list[list[str]]) -> bool:
    """Says whether both ask the same, and in what they differ."""
    if theirs == ours:
        print(f"{script.name}: the same {len(ours)} requests")
        return True
    print(f"{script.name}: {tool} makes {len(theirs)} requests, the plan {len(ours)}")
    for index in range(max(len(theirs), len(ours))):
        one = theirs[index] if index < len(theirs) else None
        other = ours[index] if index < len(ours) else None
        if one != other:
            print(f"  request {index + 1}:\n    {tool}: {one}\n    plan: {other}")
    return False
