#!/usr/bin/env python3
"""The board: servers by protocol, each line with the evidence of its runs.

Starts each server alone on one core and puts load on it from another, in the closed model and at a rate, with
`plimsoll run --evidence`. `plimsoll verify` then checks every file, and the table is made from what they say:
no figure without the verdict of its run. A run whose measurement is invalid is made again, and the last one
stays, valid or not.

    python3 bench/scripts/board.py --plimsoll target/release/plimsoll --hyper target/release/examples/hyper
    python3 bench/scripts/board.py --table                     # only checks the files and writes the table

The servers: nginx, h2o and caddy of the system (Debian: nginx-light, h2o, caddy), hyper by
`cargo build --release -p bench --example hyper`, and the sink of Plimsoll. Those that are not there are left
out. On a machine that does other things at the same time, most runs are invalid, and say so.
"""

import argparse
import json
import os
import pathlib
import pwd
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[2]
BOARD = ROOT / "bench/board"
# The protocols of the lines: the flags of the load, and the scheme.
PROTOCOLS = {
    "HTTP/1.1": (["--http1.1"], "http"),
    "HTTP/2": (["--http2"], "http"),
    "HTTP/2, TLS": (["--http2", "--cacert", "cert.pem"], "https"),
}
# As many requests in flight in each protocol.
CLOSED = {"HTTP/1.1": ["-c", "32"], "HTTP/2": ["-c", "4", "-m", "8"], "HTTP/2, TLS": ["-c", "4", "-m", "8"]}
OPEN = {"HTTP/1.1": ["-c", "32"], "HTTP/2": ["-c", "4"], "HTTP/2, TLS": ["-c", "4"]}
# Exit codes of a run whose result is there: done, invalid.
RAN = (0, 3)
# Seconds for a server to listen.
PATIENCE = 20


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def output(command: list[str]) -> subprocess.CompletedProcess:
    return subprocess.run(command, capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL)


def version_of(command: list[str]) -> str:
    """The first version number that a program says it has."""
    told = output(command)
    return re.search(r"\d+(\.\d+)+", told.stdout + told.stderr).group()


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Server:
    """A server that may be started, in a folder with its certificate (`cert.pem`, `key.pem`)."""

    def __init__(self, name: str, program: str | None, version):
        self.name, self.program = name, shutil.which(program) if program else None
        self.version = version

    def command(self, folder: pathlib.Path, port: int, protocol: str) -> list[str]:
        raise NotImplementedError


class Nginx(Server):
    def __init__(self):
        path = shutil.which("nginx") or "/usr/sbin/nginx"
        super().__init__("nginx", path, lambda: version_of([path, "-v"]))

    def command(self, folder, port, protocol):
        listens = {"HTTP/1.1": "", "HTTP/2": " http2", "HTTP/2, TLS": " ssl http2"}[protocol]
        tls = f"ssl_certificate {folder}/cert.pem; ssl_certificate_key {folder}/key.pem;" if "TLS" in protocol else ""
        spools = "".join(
            f"{one}_temp_path {folder}/{one}; " for one in ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        )
        # One process without a master serves like the one worker that it would start.
        (folder / "nginx.conf").write_text(
            f"daemon off; master_process off; worker_processes 1; pid {folder}/nginx.pid;\n"
            "events { worker_connections 1024; }\n"
            f"http {{ access_log off; keepalive_requests 100000000; {spools}\n"
            f"  server {{ listen 127.0.0.1:{port}{listens} backlog=4096; {tls}\n"
            '    location / { return 200 "ok"; } } }\n'
        )
        return [self.program, "-p", str(folder), "-c", "nginx.conf", "-e", str(folder / "errors.log")]


class H2o(Server):
    def __init__(self):
        super().__init__("h2o", "h2o", lambda: version_of(["h2o", "--version"]))

    def command(self, folder, port, protocol):
        (folder / "content").mkdir(exist_ok=True)
        (folder / "content/index.html").write_text("ok")
        files = f"certificate-file: {folder}/cert.pem, key-file: {folder}/key.pem, ocsp-update-interval: 0"
        tls = f", ssl: {{ {files} }}" if "TLS" in protocol else ""
        (folder / "h2o.conf").write_text(
            # As root it would become somebody who may not read the folder.
            f"num-threads: 1\nuser: {pwd.getpwuid(os.getuid()).pw_name}\nlisten: {{ host: 127.0.0.1, port: {port}{tls} }}\n"
            f'hosts:\n  default:\n    paths:\n      "/": {{ file.dir: {folder}/content }}\n'
        )
        return [self.program, "-c", "h2o.conf"]


class Caddy(Server):
    def __init__(self):
        super().__init__("caddy", "caddy", lambda: version_of(["caddy", "version"]))

    def command(self, folder, port, protocol):
        tls, scheme = (f"tls {folder}/cert.pem {folder}/key.pem", "https") if "TLS" in protocol else ("", "http")
        (folder / "Caddyfile").write_text(
            f"{{\n admin off\n auto_https disable_redirects\n storage file_system {folder}\n"
            " servers {\n  protocols h1 h2 h2c\n }\n}\n"
            f'{scheme}://127.0.0.1:{port} {{\n {tls}\n respond "ok"\n}}\n'
        )
        return [self.program, "run", "--config", "Caddyfile", "--adapter", "caddyfile"]


class Hyper(Server):
    def __init__(self, program):
        def version():
            packages = tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]
            return next(one["version"] for one in packages if one["name"] == "hyper")

        super().__init__("hyper", program, version)

    def command(self, folder, port, protocol):
        tls = ["cert.pem", "key.pem"] if "TLS" in protocol else []
        return [self.program, f"127.0.0.1:{port}", *tls]


class Sink(Server):
    def __init__(self, plimsoll):
        super().__init__("plimsoll sink", plimsoll, lambda: version_of([plimsoll, "--version"]))

    def command(self, folder, port, protocol):
        tls = ["--tls-cert", "cert.pem", "--tls-key", "key.pem"] if "TLS" in protocol else []
        return [self.program, "sink", "--listen", f"127.0.0.1:{port}", "--threads", "1", "--body-size", "2", *tls]


def certificate(folder: pathlib.Path) -> None:
    """A certificate for 127.0.0.1 and its key, P-256."""
    making = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    making += ["-days", "2", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    output([*making, "-out", str(folder / "cert.pem"), "-keyout", str(folder / "key.pem")])


def pinned(core: int):
    """What a child does before it becomes its program: it stays on one core."""
    return lambda: os.sched_setaffinity(0, {core})


def started(server: Server, folder: pathlib.Path, protocol: str, core: int) -> tuple[subprocess.Popen, int]:
    """A server that listens, and its port."""
    port = free_port()
    log = open(folder / "server.log", "w+")
    process = subprocess.Popen(
        server.command(folder, port, protocol),
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        env={**os.environ, "HOME": str(folder)},
        preexec_fn=pinned(core),
    )
    for _ in range(PATIENCE * 20):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return process, port
        if process.poll() is not None:
            break
        time.sleep(0.05)
    process.kill()
    process.wait()
    log.seek(0)
    raise RuntimeError(f"{server.name} does not listen by {protocol}:\n{log.read()}")


def run(options, folder: pathlib.Path, line: str, protocol: str, port: int, load: list[str]) -> dict:
    """A run with its evidence in `run.evidence`, and its result."""
    flags, scheme = PROTOCOLS[protocol]
    # The evidence has the command line: without paths of this machine, others can repeat it.
    command = ["plimsoll", "run", f"{scheme}://127.0.0.1:{port}/", *flags, *load, "-t", "1"]
    command += ["-d", f"{options.seconds}s", "--warmup", "2s", "--name", line, "--store", "history.db"]
    command += ["--evidence", "run.evidence", "--quiet", "-o", "json"]
    ran = subprocess.run(
        command,
        executable=options.plimsoll,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        preexec_fn=pinned(options.cores[1]),
    )
    result = json.loads(ran.stdout) if ran.stdout else None
    if ran.returncode not in RAN:
        why = result["verdict"]["summary"] if result else ran.stderr
        raise RuntimeError(f"{' '.join(command)}\nended with {ran.returncode}: {why}")
    return result


def measure(options, server: Server) -> None:
    """All lines of a server."""
    version = server.version()
    for protocol in PROTOCOLS:
        line = f"{server.name} {version} / {protocol.replace(',', ' over')}"
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            certificate(folder)
            process, port = started(server, folder, protocol, options.cores[0])
            try:
                rate = ["-R", str(options.rate), "--overload", "queue"]
                for kind, load in [("closed", CLOSED[protocol]), ("open", [*OPEN[protocol], *rate])]:
                    for attempt in range(1, options.attempts + 1):
                        try:
                            result = run(options, folder, line, protocol, port, load)
                        except RuntimeError as error:
                            if attempt == options.attempts:
                                raise
                            say(f"{line}, {kind}: {error}")
                            continue
                        say(f"{line}, {kind}: {', '.join(judged(result))}")
                        if result["verdict"]["valid"]:
                            break
                    name = re.sub(r"[^a-z0-9]+", "-", f"{server.name} {protocol}".lower().replace("/", ""))
                    shutil.move(folder / "run.evidence", BOARD / f"{name}-{kind}.evidence")
            finally:
                process.terminate()
                try:
                    process.wait(timeout=10)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()


def verified(options) -> list[tuple[str, dict]]:
    """The files of evidence and what they say, after `verify` has accepted all of them."""
    files = sorted(BOARD.glob("*.evidence"))
    if not files:
        sys.exit("no evidence in bench/board: make some runs first")
    checked = subprocess.run([options.plimsoll, "verify", *map(str, files)], capture_output=True, text=True)
    say(checked.stdout + checked.stderr)
    if checked.returncode != 0:
        sys.exit("evidence was refused: no table")
    shown = [output([options.plimsoll, "show", str(file), "-o", "json"]).stdout for file in files]
    return [(file.name, json.loads(text)) for file, text in zip(files, shown)]


def time_of(ns: int | None) -> str:
    """A time with three digits."""
    if ns is None:
        return "–"
    value, unit = (ns / 1e6, "ms") if ns >= 1e6 else (ns / 1e3, "µs")
    return f"{value:.{max(0, 3 - len(str(int(value))))}f} {unit}"


def judged(result: dict) -> tuple[str, str]:
    """Whether the measurement is valid, and what limited the run, in Plimsoll's words."""
    verdict = result["verdict"]
    reasons = ", ".join(reason.replace("_", " ") for reason in verdict["invalid_reasons"])
    validity = "valid" if verdict["valid"] else f"**INVALID**: {reasons}"
    return validity, verdict["limited_by"]["what"].replace("_", " ")


def server_cpu(result: dict) -> str:
    """CPU time of the server per response."""
    target = next((one for one in result["generator"]["watched"] if one["is_target"] and one["used"]), None)
    rate = result["rate"]["achieved_per_s"]
    return f"{target['used']['cpus'] / rate * 1e6:.1f} µs" if target and rate else "–"


def errors_of(result: dict) -> str:
    account = result["accounting"]
    return f"{account['failed'] + account['timed_out']:,}"


def table(options) -> None:
    """Writes the page from the evidence."""
    runs = verified(options)
    closed, open_ = [], []
    for file, result in runs:
        server, protocol = result["run"]["name"].split(" / ")
        link = f"[{file.removesuffix('.evidence')}]({file})"
        start, (validity, limit) = [server, protocol], judged(result)
        if result["model"]["kind"] == "open":
            p99, rate = result["response_time"]["p"]["99"], result["rate"]["target_per_s"]
            figures = [f"{rate:,.0f}", f"{result['rate']['achieved_per_s']:,.0f}", time_of(p99)]
            open_.append([*start, *figures, errors_of(result), validity, limit, link])
        else:
            p99, rate = result["service_time"]["p"]["99"], result["rate"]["achieved_per_s"]
            figures = [f"{rate:,.0f}", server_cpu(result), time_of(p99)]
            closed.append([*start, *figures, errors_of(result), validity, limit, link])
    results = [result for _, result in runs]
    host = results[0]["run"]["host"]
    days = sorted({result["run"]["started_at"][:10] for result in results})
    tool = results[0]["tool"]
    invalid = sum(not result["verdict"]["valid"] for result in results)
    doubt = "The measurements of all runs are valid."
    if invalid:
        doubt = f"**{invalid} of {len(results)} measurements are invalid**: their figures are what was seen, and not what the server can do.\n"
        doubt += "The column says why: a server that answers faster than one core can ask, or a machine with other things to do."
    page = f"""# Board

Servers by protocol, and what limited each run. Made by `bench/scripts/board.py` from the evidence beside it: `plimsoll verify bench/board/*.evidence`
makes every figure and verdict again ([Evidence](../../docs/guides/evidence.md)).

{days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"}, {tool["name"]} {tool["version"]}, {host["cpu_model"]}, {host["kernel"]}. One machine: the server on one core, the generator on another, loopback, a body of two bytes (h2o: of a file, the others: from memory), {round(results[0]["duration_s"])} s after 2 s of warm-up.
{doubt}

## As fast as it answers

32 requests in flight: 32 connections, or 4 with 8 streams each. The p99 is that of service times.

{rows(["server", "protocol", "requests/s", "server's CPU per request", "p99", "errors", "measurement", "limited by", "evidence"], closed)}
## At a rate

The p99 is that of response times, from when each request was due.

{rows(["server", "protocol", "wanted/s", "achieved/s", "p99", "errors", "measurement", "limited by", "evidence"], open_)}"""
    (BOARD / "README.md").write_text(page)
    say(f"wrote {BOARD / 'README.md'}")


def rows(head: list[str], cells: list[list[str]]) -> str:
    figures = range(2, 6)
    ruler = ["---:" if column in figures else "---" for column in range(len(head))]
    return "".join(f"| {' | '.join(row)} |\n" for row in [head, ruler, *sorted(cells)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plimsoll", default=str(ROOT / "target/release/plimsoll"))
    parser.add_argument("--hyper", default=str(ROOT / "target/release/examples/hyper"))
    parser.add_argument("--seconds", type=int, default=5, help="length of a run")
    parser.add_argument("--rate", type=int, default=2000, help="requests per second of the open runs")
    parser.add_argument("--attempts", type=int, default=3, help="runs of a line until one is valid")
    parser.add_argument("--cores", default="0,1", help="of the server, and of the generator")
    parser.add_argument("--only", default="", help="servers whose name contains this")
    parser.add_argument("--table", action="store_true", help="make no runs")
    options = parser.parse_args()
    options.cores = [int(core) for core in options.cores.split(",")]
    options.plimsoll = str(pathlib.Path(options.plimsoll).resolve())
    options.hyper = str(pathlib.Path(options.hyper).resolve())
    if not options.table:
        for server in [Nginx(), H2o(), Caddy(), Hyper(options.hyper), Sink(options.plimsoll)]:
            if not server.program:
                say(f"left out: {server.name} is not there")
            elif options.only in server.name:
                measure(options, server)
    table(options)


if __name__ == "__main__":
    main()
