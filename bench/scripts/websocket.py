#!/usr/bin/env python3
"""WebSockets: CPU time per echoed message beside other clients, and memory of connections that are open.

    bench/scripts/websocket.py echo --plimsoll target/release/plimsoll --k6 ~/go/bin/k6
    bench/scripts/websocket.py open --plimsoll target/release/plimsoll --connections 10000

`echo`: the server is `plimsoll sink --websocket` on one core, the clients run on another. Each sends a
message, waits for it to come back, and sends the next one, on some connections at a time. Each round runs
every client once, so that they share what the machine does meanwhile, and ratios are taken within a round. k6
is had by `go install go.k6.io/k6@latest`, the Python client by `pip install websockets` (`--python` names an
interpreter that has it). Clients that are not there are left out.

`open`: that many connections are opened by one process, each sends a message and gets it back, and then all
stay open at once. Resident memory of the client and of the sink are read while they do, above that of the
same run with ten connections. The limit of file descriptors is raised as far as the system allows.
"""

import argparse
import json
import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from child import cpu_seconds

K6 = """
import ws from 'k6/ws';
export const options = { vus: CONNECTIONS, iterations: CONNECTIONS };
export default function () {
  ws.connect('ws://ADDRESS/', {}, (socket) => {
    let left = MESSAGES;
    socket.on('open', () => socket.send('TEXT'));
    socket.on('message', () => { left -= 1; if (left > 0) socket.send('TEXT'); else socket.close(); });
  });
}
"""

PYTHON = """
import asyncio
from websockets.asyncio.client import connect
async def one():
    async with connect('ws://ADDRESS/', compression=None) as socket:
        for _ in range(MESSAGES):
            await socket.send('TEXT')
            await socket.recv()
async def all():
    await asyncio.gather(*(one() for _ in range(CONNECTIONS)))
asyncio.run(all())
"""


def raise_limit() -> None:
    """Allows a process as many file descriptors as the system does."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def sink(program: str, core: str) -> tuple[subprocess.Popen, str]:
    """A server of echo on a core, and its address."""
    command = ["taskset", "-c", core, program, "sink", "--websocket", "--listen", "127.0.0.1:0"]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, preexec_fn=raise_limit)
    return server, server.stderr.readline().split("listening on ")[1].strip()


def echo(args: argparse.Namespace) -> None:
    of_server, of_clients = args.cores.split(",")
    server, address = sink(args.plimsoll, of_server)
    spent: dict[str, list[float]] = {}
    messages = args.connections * args.messages
    try:
        with tempfile.TemporaryDirectory() as folder:

            def script(name: str, text: str) -> str:
                text = text.replace("ADDRESS", address).replace("TEXT", "x" * args.text)
                text = text.replace("CONNECTIONS", str(args.connections)).replace("MESSAGES", str(args.messages))
                path = pathlib.Path(folder) / name
                path.write_text(text)
                return str(path)

            clients = {
                "plimsoll": [
                    args.plimsoll, "ws", f"ws://{address}/", "-c", str(args.connections), "-n",
                    str(args.connections), "--messages", str(args.messages), "--message", "x" * args.text,
                    "--quiet", "-o", "json",
                ],
                "k6": [args.k6, "run", "--quiet", "--no-usage-report", script("echo.js", K6)],
                "websockets": [args.python, script("echo.py", PYTHON)],
            }
            clients = {name: command for name, command in clients.items() if shutil.which(command[0])}
            for _ in range(args.rounds):
                for name, command in clients.items():
                    spent.setdefault(name, []).append(cpu_seconds(command, of_clients) / messages * 1e6)
    finally:
        server.kill()
        server.wait()
    ours = spent["plimsoll"]
    print(f"| client | CPU µs per echoed message, median of {args.rounds} | plimsoll's share of it, each round |")
    print("|---|---|---|")
    for name, times in spent.items():
        ratios = ", ".join(f"{our / other:.3f}" for our, other in zip(ours, times))
        print(f"| {name} | {statistics.median(times):.2f} | {ratios} |")


PLAN = """
targets: {chat: 'ws://ADDRESS'}
run: {connections: COUNT, iterations: COUNT, connect_timeout: 60s, timeout: 60s}
scenarios:
  - steps:
      - websocket: {open: /}
      - websocket: {send: hello, receive: {any: true}}
      - think: PAUSEs
      - websocket: {close: 1000}
"""


def resident(pid: int) -> int:
    """The resident memory of a process, in KiB."""
    lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))


def sockets(pid: int) -> int:
    """The number of descriptors of a process."""
    return len(os.listdir(f"/proc/{pid}/fd"))


def held(program: str, count: int, pause: int) -> tuple[int, int]:
    """Resident memory of the client and of the sink while that many connections are open, in KiB."""
    server, address = sink(program, "0,1")
    client = None
    try:
        with tempfile.TemporaryDirectory() as folder:
            plan = pathlib.Path(folder) / "plan.yaml"
            text = PLAN.replace("ADDRESS", address).replace("COUNT", str(count))
            plan.write_text(text.replace("PAUSE", str(pause)))
            command = [program, "run", str(plan), "--threads", "1", "--no-preflight", "--quiet", "-o", "json"]
            client = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, preexec_fn=raise_limit)
            found = None
            while found is None:
                time.sleep(0.2)
                if client.poll() is not None:
                    sys.exit(f"the run ended before {count} connections were open")
                if sockets(client.pid) >= count and sockets(server.pid) >= count:
                    # The last of them have still to send their message.
                    time.sleep(pause / 4)
                    found = (resident(client.pid), resident(server.pid))
            result = json.loads(client.communicate()[0])
    finally:
        if client is not None and client.poll() is None:
            client.kill()
        server.kill()
        server.wait()
    if result["websocket"]["opened"] != count or result["accounting"]["ok"] != 3 * count:
        sys.exit(f"{result['websocket']}\n{result['accounting']}\n{result.get('error_examples')}")
    return found


def hold(args: argparse.Namespace) -> None:
    few = held(args.plimsoll, 10, 4)
    many = held(args.plimsoll, args.connections, args.pause)
    print("| process | resident, 10 connections | resident, all open | KiB each |")
    print("|---|---:|---:|---:|")
    for name, less, more in zip(("client", "sink"), few, many):
        each = (more - less) / (args.connections - 10)
        print(f"| {name} | {less} KiB | {more} KiB | {each:.2f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    of_echo = commands.add_parser("echo")
    of_echo.set_defaults(run=echo)
    of_echo.add_argument("--k6", default="k6")
    of_echo.add_argument("--python", default="python3")
    of_echo.add_argument("--connections", type=int, default=50)
    of_echo.add_argument("--messages", type=int, default=2_000, help="of each connection")
    of_echo.add_argument("--text", type=int, default=32, help="bytes of a message")
    of_echo.add_argument("--rounds", type=int, default=3)
    of_echo.add_argument("--cores", default="0,1", help="of the server, and of the clients")
    of_open = commands.add_parser("open")
    of_open.set_defaults(run=hold)
    of_open.add_argument("--connections", type=int, default=10_000)
    of_open.add_argument("--pause", type=int, default=20, help="seconds for which they stay open")
    for command in (of_echo, of_open):
        command.add_argument("--plimsoll", default="target/release/plimsoll")
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()
