#!/usr/bin/env python3
"""A fleet beside one machine: are two agents at half the rate the same as one at the full rate, and what does an agent cost?

Everything is on this machine: a broker (`nats-server`, or PLIMSOLL_NATS_SERVER), the sink, and three agents of one thread
each. A round makes several runs on each side, in alternating order, and `compare` judges them. Then runs with and without a fleet
take turns, and the CPU time of the agent with its process is held against that of `plimsoll run` alone.

    python3 bench/scripts/fleet.py --plimsoll target/dist/plimsoll                 # 20 rounds and 10 pairs: about an hour
    python3 bench/scripts/fleet.py --rounds 2 --pairs 3 --seconds 5                # a part of it

Nothing but the standard library is needed. The table goes to the standard output, progress to the standard error.
"""

import argparse
import json
import os
import pathlib
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import threading

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
AGENTS = ["one", "left", "right"]
# Exit codes of a run whose result is there: done, thresholds, invalid.
RAN = (0, 3)


def say(text):
    print(text, file=sys.stderr, flush=True)


def started(command, mark):
    """A process that goes on, and the line in which it says that it is ready."""
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    for line in process.stderr:
        if mark in line:
            threading.Thread(target=process.stderr.read, daemon=True).start()
            return process, line.strip()
    raise RuntimeError(f"{command[1]} did not start")


def cpu_of(process):
    """CPU time of a process and of its children that have ended, in seconds."""
    fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return sum(int(field) for field in fields[11:15]) / os.sysconf("SC_CLK_TCK")


class Fleet:
    def __init__(self, options, folder):
        self.plimsoll = options.plimsoll
        self.folder = str(folder / "fleet")
        up = [self.plimsoll, "fleet", "up", "--listen", "127.0.0.1:0", "--agents", ",".join(AGENTS)]
        told = subprocess.run([*up, "--folder", self.folder], capture_output=True, text=True)
        if told.returncode != 0:
            raise RuntimeError(told.stderr)
        self.url = next(line.split(": ", 1)[1] for line in told.stdout.splitlines() if line.startswith("broker: "))
        self.agents = {}
        for name in AGENTS:
            command = [self.plimsoll, "agent", "--nats", self.url, "--creds", f"{self.folder}/{name}.key"]
            command += ["--folder", str(folder / f"runs-{name}")]
            self.agents[name] = started(command, f"agent {name}: ready")[0]

    def flags(self, agents):
        return ["--fleet", self.url, "--fleet-creds", f"{self.folder}/coordinator.key", "--agents", agents]

    def stop(self):
        for agent in self.agents.values():
            agent.send_signal(signal.SIGINT)
            agent.wait()
        subprocess.run([self.plimsoll, "fleet", "down", "--folder", self.folder], check=True, capture_output=True)


def load(options, url, seed, more):
    command = [options.plimsoll, "run", url, "--rate", str(options.rate), "-d", f"{options.seconds}s", "-c", "16"]
    command += ["-t", "1", "--seed", str(seed), "-o", "json", "--quiet", *more]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ran = subprocess.run(command, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if ran.returncode not in RAN:
        raise RuntimeError(ran.stderr)
    return ran.stdout, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def a_round(options, fleet, url, number, folder):
    """Runs of one agent and of two, and what `compare` says of them."""
    sides = {"one": folder / f"one-{number}", "two": folder / f"two-{number}"}
    for side in sides.values():
        side.mkdir()
    for run in range(options.runs):
        order = ["one", "two"] if run % 2 == 0 else ["two", "one"]
        for side in order:
            agents = "one" if side == "one" else "left,right"
            text, _ = load(options, url, number * 1000 + run, fleet.flags(agents))
            (sides[side] / f"{run}.json").write_text(text)
    command = [options.plimsoll, "compare", str(sides["one"]), str(sides["two"]), "-o", "json", "--allow-invalid", "--force"]
    command += [part for metric in options.metrics.split(",") for part in ("--metric", metric)]
    told = json.loads(subprocess.run(command, capture_output=True, text=True).stdout)
    figures = {one["metric"]: one["verdict"] for one in told["metrics"] if one.get("judged", True)}
    invalid = 0
    for side in sides.values():
        for file in side.iterdir():
            invalid += not json.loads(file.read_text())["verdict"]["valid"]
    return told["verdict"], figures, invalid


def a_pair(options, fleet, url, number):
    """CPU seconds of a run without a fleet, of an agent with the process of its run, and of the coordinator."""
    def alone():
        return load(options, url, number, [])[1]

    def on_agent():
        before = cpu_of(fleet.agents["one"])
        coordinator = load(options, url, number, fleet.flags("one"))[1]
        return cpu_of(fleet.agents["one"]) - before, coordinator

    if number % 2 == 0:
        single, (agent, coordinator) = alone(), on_agent()
    else:
        (agent, coordinator), single = on_agent(), alone()
    return single, agent, coordinator


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plimsoll", default=str(ROOT / "target/dist/plimsoll"))
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--runs", type=int, default=5, help="runs a side in each round")
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--rate", type=int, default=2000)
    parser.add_argument("--metrics", default="p50,p90,p99,rate,errors", help="the metrics that are compared")
    parser.add_argument("--delay", default="0ms", help="time after which the sink answers")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        sink = [options.plimsoll, "sink", "--listen", "127.0.0.1:0", "--delay", options.delay]
        sink, line = started(sink, "listening on ")
        url = "http://" + line.split("listening on ")[1].removeprefix("http://") + "/"
        fleet = None
        try:
            fleet = Fleet(options, folder)
            verdicts = []
            for number in range(options.rounds):
                verdict, figures, invalid = a_round(options, fleet, url, number, folder)
                verdicts.append(verdict)
                of = 2 * options.runs
                say(f"round {number + 1}: {verdict}; {figures}; {invalid} of {of} runs invalid")
            pairs = []
            for number in range(options.pairs):
                pairs.append(a_pair(options, fleet, url, number))
                say(f"pair {number + 1}: alone {pairs[-1][0]:.2f} s of CPU, agent and its process {pairs[-1][1]:.2f} s")
        finally:
            if fleet:
                fleet.stop()
            sink.send_signal(signal.SIGINT)
            sink.wait()
    print(f"{options.rate}/s for {options.seconds} s, answered after {options.delay}, {options.runs} runs a side")
    if verdicts:
        told = ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in sorted(set(verdicts)))
        print(f"| two agents at half the rate beside one | {told} of {len(verdicts)} |")
    if pairs:
        # Of a core, over the length of the load.
        more = [100 * (agent - single) / options.seconds for single, agent, _ in pairs]
        coordinators = [100 * coordinator / options.seconds for *_, coordinator in pairs]
        print(f"| CPU of an agent above a run without a fleet, % of a core | {statistics.median(more):.2f} "
              f"({min(more):.2f}..{max(more):.2f}) |")
        print(f"| CPU of the coordinator, % of a core | {statistics.median(coordinators):.2f} |")


if __name__ == "__main__":
    main()
