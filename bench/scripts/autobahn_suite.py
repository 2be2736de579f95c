#!/usr/bin/env python3
"""The Autobahn test suite for WebSocket against `plimsoll sink --websocket`, and against plimsoll as a
client.

    bench/scripts/autobahn_suite.py --plimsoll target/release/plimsoll

The suite is written for Python 2. This runs its cases by kosoku (`pip install kosoku`), which plays them from
Python 3. The client of the suite has to send every message back: a plan with a loop does. Whether it sends
text or binary messages is written in the plan, and messages that no variable can hold come from a file, so
that there are several runs. Groups 12 and 13 are about compression, which plimsoll does not agree on.

The numbers of cases by their outcome are printed, and every case that is not OK by its number; the exit code
is 1 if there is one that the suite calls failed.
"""

import argparse
import asyncio
import collections
import os
import pathlib
import subprocess
import sys
import tempfile

from kosoku import FailureError, run_fuzzingclient, run_fuzzingserver

COMPRESSED = ["12.*", "13.*"]
# Binary messages.
BINARY = ["1.2.*", "9.4.*", "9.8.*"]
# Messages that no variable of a plan can hold, as they have control characters or 16 MiB: they are sent from
# a file.
SIZES = [1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 23, 1 << 24]
FROM_FILES = {"6.7.1": b"\0", "6.9.1": b"\x7f", "9.1.6": b"BAsd7&jh23" * (SIZES[5] // 10 + 1)}
for nth, size in enumerate(SIZES, 1):
    FROM_FILES[f"9.2.{nth}"] = b"\0\xfe\x23\xfa\xf0" * (size // 5 + 1)
    FROM_FILES[f"9.6.{nth}"] = b"\0\xfe\x23\xfa\xf0" * ((1 << 20) // 5 + 1)
FROM_FILES = {
    number: message[: SIZES[int(number[-1]) - 1]] if number.startswith(("9.1", "9.2")) else message[: 1 << 20]
    for number, message in FROM_FILES.items()
}
# Cases of the suite (version 25.10.1) beside those with compression, and those of BINARY.
CASES, CASES_OF_BINARY = 301, 23

HEAD = """
targets: {suite: 'ws://127.0.0.1:PORT'}
run: {iterations: COUNT, connections: 1, timeout: 120s, seed: 1}
data: {case: {range: [1, NEXT]}}
scenarios:
  - steps:
      - websocket: {open: '/runCase?case=${case}&agent=plimsoll'}
"""

LOOP = """
      - set: {message: none}
      - while: exists message
        steps:
          - websocket: {receive: {any: true}}
            extract: {message: {body: true, default: ''}}
          - websocket: {send: '${message}', binary: KIND}
"""

ONCE = """
      - websocket: {receive: {any: true}}
      - websocket: {send_file: message, binary: KIND}
      - websocket: {receive: {any: true}}
"""

REPORT = """
targets: {suite: 'ws://127.0.0.1:PORT'}
run: {iterations: 1, connections: 1}
scenarios:
  - steps:
      - websocket: {open: '/updateReports?agent=plimsoll'}
      - websocket: {receive: {any: true}}
"""


def outcome(result) -> str:
    """The outcome of a case: of its messages, or of its end if that is worse."""
    words = [str(one).split(".")[-1] for one in (result.behavior, result.behavior_close)]
    return next((word for word in words if word not in ("OK", "INFORMATIONAL")), words[0])


async def of_sink(program: str) -> dict[str, str]:
    command = [program, "sink", "--websocket", "--listen", "127.0.0.1:0"]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        address = server.stderr.readline().split("listening on ")[1].strip()
        try:
            results = await run_fuzzingclient(f"ws://{address}", None, COMPRESSED)
        except FailureError as error:
            results = error.results
        return {result.case_id: outcome(result) for result in results}
    finally:
        server.kill()
        server.wait()


async def of_client(program: str, cases: list[str], others: list[str], steps: str) -> dict[str, str]:
    """Plays some cases with our client, whose steps behind the upgrade these are."""
    count = CASES - CASES_OF_BINARY - len(FROM_FILES) if cases == ["*"] else CASES_OF_BINARY
    count = 1 if steps is ONCE else count
    binary = cases == BINARY or cases[0].startswith(("9.2", "9.6"))
    chosen = None if cases == ["*"] else cases
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        if steps is ONCE:
            (folder / "message").write_bytes(FROM_FILES[cases[0]])
        async with run_fuzzingserver(chosen, others or None, port=0) as server:
            for text in (HEAD + steps, REPORT):
                text = text.replace("PORT", str(server.port)).replace("KIND", str(binary).lower())
                plan = folder / "plan.yaml"
                plan.write_text(text.replace("COUNT", str(count)).replace("NEXT", str(count + 1)))
                command = [program, "run", str(plan), "--no-preflight", "--quiet", "-o", "json"]
                quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
                process = await asyncio.create_subprocess_exec(*command, **quiet)
                _, words = await process.communicate()
                if process.returncode not in (0, 1, 3):
                    sys.exit(words.decode())
            try:
                results = await server.get_result()
            except FailureError as error:
                results = error.results
    return {result.case_id: outcome(result) for result in results}


async def client(program: str) -> dict[str, str]:
    groups = [(["*"], COMPRESSED + BINARY + list(FROM_FILES), LOOP), (BINARY, [], LOOP)]
    groups += [([number], [], ONCE) for number in FROM_FILES]
    found = {}
    for cases, others, steps in groups:
        found |= await of_client(program, cases, others, steps)
    return found


async def main() -> bool:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plimsoll", default="target/release/plimsoll")
    program = parser.parse_args().plimsoll
    failed = False
    for who, found in (("sink", await of_sink(program)), ("client", await client(program))):
        if len(found) != CASES:
            sys.exit(f"{who}: {len(found)} cases of {CASES}")
        counts = collections.Counter(found.values())
        print(f"{who}: " + ", ".join(f"{count} {outcome}" for outcome, count in counts.most_common()))
        for number, ended in found.items():
            if ended != "OK":
                print(f"  {number}: {ended}")
            failed |= ended not in ("OK", "INFORMATIONAL", "NON_STRICT")
    return failed


if __name__ == "__main__":
    is_failed = asyncio.run(main())
    sys.stdout.flush()
    # The threads of kosoku do not survive the end of an interpreter.
    os._exit(is_failed)
