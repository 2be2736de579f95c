#!/usr/bin/env python3
"""CPU time per unary call of gRPC: plimsoll, ghz and h2load in turns, with the same message.

The server is `plimsoll sink --grpc` on one core, the tools run on another. Each round runs every tool once, so
that they share what the machine does meanwhile, and ratios are taken within a round.

    bench/scripts/grpc.py --plimsoll target/release/plimsoll --ghz ~/go/bin/ghz --h2load h2load

ghz is had by `go install github.com/bojand/ghz/cmd/ghz@latest`. Tools that are not there are left out.
"""

import argparse
import pathlib
import shutil
import statistics
import struct
import subprocess
import tempfile

from child import cpu_seconds

PROTO = pathlib.Path(__file__).resolve().parents[2] / "ext/grpc/src/service/sink.proto"
METHOD = "plimsoll.sink.v1.Sink/Echo"


def message(text: str) -> bytes:
    """The message of the method with this text, behind its prefix."""
    data = text.encode()
    length, varint = len(data), b""
    while length >= 0x80:
        varint, length = varint + bytes([length & 0x7F | 0x80]), length >> 7
    payload = b"\x0a" + varint + bytes([length]) + data
    return b"\0" + struct.pack(">I", len(payload)) + payload


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plimsoll", default="target/release/plimsoll")
    parser.add_argument("--ghz", default="ghz")
    parser.add_argument("--h2load", default="h2load")
    parser.add_argument("--calls", type=int, default=200_000)
    parser.add_argument("--connections", type=int, default=1)
    parser.add_argument("--streams", type=int, default=50, help="calls at a time on each connection")
    parser.add_argument("--text", type=int, default=32, help="bytes of the message")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cores", default="0,1", help="of the server, and of the tools")
    args = parser.parse_args()
    of_server, of_tools = args.cores.split(",")
    text = "x" * args.text
    with tempfile.TemporaryDirectory() as folder:
        body = pathlib.Path(folder) / "body"
        body.write_bytes(message(text))
        server = subprocess.Popen(
            ["taskset", "-c", of_server, args.plimsoll, "sink", "--grpc", "--listen", "127.0.0.1:0"],
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            address = server.stderr.readline().split("listening on ")[1].strip()
            at_once = args.connections * args.streams
            calls, connections = str(args.calls), str(args.connections)
            json = f'{{"text": "{text}"}}'
            tools = {
                "plimsoll": [
                    args.plimsoll, "grpc", address, METHOD, "--proto", str(PROTO), "-d", json, "-n", calls,
                    "-c", connections, "--streams", str(args.streams), "--quiet", "-o", "json",
                ],
                "ghz": [
                    args.ghz, "--insecure", "--proto", str(PROTO), "--call", METHOD, "-d", json, "-n", calls,
                    "-c", str(at_once), "--connections", connections, "-O", "json", address,
                ],
                "h2load": [
                    args.h2load, "-n", calls, "-c", connections, "-m", str(args.streams), "-d", str(body),
                    "-H", "content-type: application/grpc+proto", "-H", "te: trailers",
                    f"http://{address}/{METHOD}",
                ],
            }
            tools = {name: command for name, command in tools.items() if shutil.which(command[0])}
            spent: dict[str, list[float]] = {name: [] for name in tools}
            for _ in range(args.rounds):
                for name, command in tools.items():
                    spent[name].append(cpu_seconds(command, of_tools) / args.calls * 1e6)
        finally:
            server.kill()
            server.wait()
    ours = spent["plimsoll"]
    print(f"| tool | CPU µs per call, median of {args.rounds} | plimsoll's share of it, each round |")
    print("|---|---|---|")
    for name, times in spent.items():
        ratios = ", ".join(f"{our / time:.2f}" for our, time in zip(ours, times))
        print(f"| {name} | {statistics.median(times):.2f} | {ratios} |")


if __name__ == "__main__":
    main()
