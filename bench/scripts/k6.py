#!/usr/bin/env python3
"""Are the requests of imported k6 scripts those that k6 makes? Both run each script once, and a server compares them one by one.

    bench/scripts/k6.py --plimsoll target/debug/plimsoll --k6 ~/go/bin/k6 [SCRIPT …]

Without scripts it takes those of the tests (crates/import/tests/k6). k6 is had by `go install go.k6.io/k6@latest`. For k6 a
wrapper calls each function of the script's scenarios once; `plimsoll try` does the same with the plan. Compared are method,
path with query, body, and the headers that the script decides. Values that are drawn (`random=…`, `"random":"…"`, UUIDs,
times) are replaced by their kinds first.

With --write, the requests that k6 makes go into files beside the scripts (`get.requests`), which the tests of the command
compare with what the plan makes: these need no k6.
"""

import argparse
import http.server
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "crates/import/tests/k6"
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
# The parts of libraries that the scripts use, as k6 would load them from the network.
LIBRARY = """
export const randomIntBetween = (min, max) => Math.floor(Math.random() * (max - min + 1) + min);
export const randomItem = (items) => items[Math.floor(Math.random() * items.length)];
export const randomString = (n) => Array.from({ length: n }, () => 'abcdefgh'[Math.floor(Math.random() * 8)]).join('');
export const uuidv4 = () => 'xxxxxxxx-xxxx-4xxx-8xxx-xxxxxxxxxxxx'.replace(/x/g, () => Math.floor(Math.random() * 16).toString(16));
export const findBetween = (text, left, right) => text.split(left)[1].split(right)[0];
const parse = (text, options) => {
  const rows = text.trim().split('\\n').map((line) => line.split(','));
  const names = rows.shift();
  return { data: rows.map((row) => Object.fromEntries(names.map((name, index) => [name, row[index]]))) };
};
export default { parse };
"""


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


def functions(text: str) -> list[str]:
    """The functions that scenarios carry out, in their order. A plan has one kind of load, users or a rate: that of the first."""
    scenarios = re.findall(r"executor: '([\w-]+)'(?:(?!executor:).)*?exec: '(\w+)'", text, re.DOTALL)
    is_open = [executor.endswith("arrival-rate") for executor, _ in scenarios]
    return [name for (_, name), kind in zip(scenarios, is_open) if kind == is_open[0]] or ["default"]


def of_k6(k6: str, script: pathlib.Path, folder: pathlib.Path, server: Recorder) -> list[list[str]]:
    """What k6 asks when each function is called once."""
    for path in [*folder.rglob("*.js"), *folder.rglob("*.ts")]:
        text = path.read_text()
        up = "../" * (len(path.relative_to(folder).parts) - 1) or "./"
        path.write_text(re.sub(r"'https://jslib[^']*'", f"'{up}jslib.js'", text))
    (folder / "jslib.js").write_text(LIBRARY)
    environments = dict(re.findall(r"env: \{ (\w+): '(\w+)' \}", script.read_text()))
    # The options of the script itself would be k6's load.
    calls = "".join(f"  script['{name}'](data);\n" for name in functions(script.read_text()))
    wrapper = folder / "wrapper.js"
    wrapper.write_text(
        f"import http from 'k6/http';\nimport * as script from './{script.name}';\n"
        "const own = script.options || {};\n"
        "export const options = { scenarios: { once: { executor: 'shared-iterations', vus: 1, iterations: 1 } },\n"
        "  userAgent: own.userAgent, maxRedirects: own.maxRedirects };\n"
        "export const setup = () => (script.setup ? script.setup() : undefined);\n"
        f"export default function (data) {{\n  http.get('http://127.0.0.1:{server.server_port}/__begin');\n{calls}}}\n"
    )
    given = [word for name, value in environments.items() for word in ("-e", f"{name}={value}")]
    command = [k6, "run", "--quiet", "--no-summary", "--no-usage-report", *given, str(wrapper)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120)
    if run.returncode != 0:
        sys.exit(f"{' '.join(command)}\nended with {run.returncode}:\n{run.stderr}")
    return server.take()


def of_plimsoll(program: str, script: pathlib.Path, server: Recorder) -> list[list[str]]:
    """What the plan asks when each scenario is carried out once."""
    plan = script.with_suffix(".yaml")
    imported = subprocess.run([program, "import", "k6", str(script)], capture_output=True, text=True)
    if imported.returncode != 0:
        sys.exit(f"import of {script.name}:\n{imported.stderr}")
    plan.write_text(imported.stdout)
    for command in ("check", "try"):
        server.take()
        run = subprocess.run([program, command, str(plan)], capture_output=True, text=True, timeout=120)
        if run.returncode != 0:
            sys.exit(f"{command} of {script.name} ended with {run.returncode}:\n{run.stdout}{run.stderr}{plan.read_text()}")
    return server.take()


def shown(requests: list[list[str]]) -> str:
    return "".join("\n".join(line for line in request if line) + "\n\n" for request in requests)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--plimsoll", default=str(ROOT / "target/debug/plimsoll"))
    parser.add_argument("--k6", default=shutil.which("k6") or os.path.expanduser("~/go/bin/k6"))
    parser.add_argument("--write", action="store_true", help="write the requests of k6 beside the scripts")
    parser.add_argument("scripts", nargs="*", type=pathlib.Path)
    given = parser.parse_args()
    scripts = given.scripts or sorted(
        path for path in [*SCRIPTS.glob("*.js"), *SCRIPTS.glob("*.ts")] if path.stem != "unsupported"
    )
    server, differ = Recorder(), 0
    for script in scripts:
        sides = []
        for side in (0, 1):
            with tempfile.TemporaryDirectory() as name:
                folder = pathlib.Path(name) / "scripts"
                shutil.copytree(script.parent, folder)
                for path in [*folder.rglob("*.js"), *folder.rglob("*.ts")]:
                    text = path.read_text().replace("127.0.0.1:8080", f"127.0.0.1:{server.server_port}")
                    path.write_text(text)
                own = folder / script.name
                sides.append(of_k6(given.k6, own, folder, server) if side == 0 else of_plimsoll(given.plimsoll, own, server))
        theirs, ours = ([json.loads(json.dumps(side).replace(f":{server.server_port}", ":8080")) for side in sides])
        # Requests that are sent at once arrive in any order.
        if "http.batch" in script.read_text():
            theirs, ours = sorted(theirs), sorted(ours)
        if given.write:
            script.with_suffix(".requests").write_text(shown(theirs))
        if theirs == ours:
            print(f"{script.name}: the same {len(ours)} requests")
            continue
        differ += 1
        print(f"{script.name}: k6 makes {len(theirs)} requests, the plan {len(ours)}")
        for index in range(max(len(theirs), len(ours))):
            one = theirs[index] if index < len(theirs) else None
            other = ours[index] if index < len(ours) else None
            if one != other:
                print(f"  request {index + 1}:\n    k6:   {one}\n    plan: {other}")
    if differ:
        sys.exit(f"{differ} of {len(scripts)} scripts differ")
    print(f"all {len(scripts)} scripts make the same requests")


if __name__ == "__main__":
    main()
