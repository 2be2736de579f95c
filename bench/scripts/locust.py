#!/usr/bin/env python3
"""Are the requests of imported locustfiles those that Locust makes? Both carry out each task once, and a server compares the requests.

    bench/scripts/locust.py --plimsoll target/debug/plimsoll --locust venv/bin/locust [FILE …]

Without files it takes those of the tests (crates/import/tests/locust). Locust is had by `pip install locust` in a venv. It picks
tasks at random, so that two of its own runs make different requests; what belongs to one task comes in a fixed order. A wrapper
therefore has Locust itself carry out one user for each task, in turn: `on_start`, the task (a sequence as a whole), `on_stop`. `plimsoll try`
does the same with the plan, whose scenarios are these tasks (`--tasks 1`): then the requests are the same ones in the same order. The
weights of tasks are held by tests of the import. Compared are method, path with query, body, and the headers that the file decides.
Values that are drawn (`random=…`, `"random":"…"`, UUIDs) are replaced by their kinds, and blanks of JSON are left out.

With --write, the requests that Locust makes go into files beside the locustfiles (`quickstart.requests`), which the tests of the
command compare with what the plan makes: these need no Locust.
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys

from recorder import Recorder, is_same, kinds, of_both, of_plan, shown

ROOT = pathlib.Path(__file__).resolve().parents[2]
FILES = ROOT / "crates/import/tests/locust"
# What Locust sends of itself, and a plan does not.
OWN_HEADERS = {"accept: */*"}
WRAPPER = '''
import inspect, os
import gevent
import SCRIPT as file
from locust import HttpUser, FastHttpUser, SequentialTaskSet, TaskSet
from locust.exception import StopUser


def stop(*_):
    raise StopUser()


def in_order(tasks):
    return list(dict.fromkeys(tasks))


def only_interrupts(task):
    if inspect.isclass(task):
        return False
    names = task.__code__.co_names
    return "interrupt" in names and "client" not in names


def waits(count):
    """No wait but the last one, which ends the user."""
    left = [count]
    def wait(*_):
        left[0] -= 1
        return stop() if left[0] <= 0 else 0
    return wait


def once(tasks):
    """The tasks of a class, each so that it is carried out once."""
    for task in in_order(tasks):
        if not inspect.isclass(task):
            if not only_interrupts(task):
                yield task, waits(1)
        elif issubclass(task, SequentialTaskSet):
            yield entered_once(task, task.tasks, waits(len(task.tasks))), None
        else:
            for inner, wait in once(task.tasks):
                yield entered_once(task, [inner], wait), None


def entered_once(base, tasks, wait):
    class Once(base):
        entered = False
        def on_start(self):
            if Once.entered:
                stop()
            Once.entered = True
            super().on_start()
    Once.tasks = tasks
    if wait:
        Once.wait_time = wait
    Once.__name__ = base.__name__
    return Once


def users():
    for user in vars(file).values():
        is_user = inspect.isclass(user) and issubclass(user, (HttpUser, FastHttpUser)) and user.__module__ == file.__name__
        if is_user and not user.abstract and user.tasks:
            for task, wait in once(user.tasks):
                yield user, task, wait


ALL = list(users())
INDEX = int(os.environ["INDEX"])
if INDEX < len(ALL):
    # Locust starts every class of users that has a name here.
    class OnlyUser(ALL[INDEX][0]):
        weight = 1
        fixed_count = 0
        wait_time = ALL[INDEX][2] or stop
        def run(self):
            try:
                super().run()
            finally:
                gevent.spawn_later(0.05, self.environment.runner.quit)
    # In the body of the class these would be added to those of its base.
    OnlyUser.tasks = [ALL[INDEX][1]]
else:
    raise SystemExit(77)
'''


def of_locust(locust: str, script: pathlib.Path, server: Recorder) -> list[list[str]]:
    """What Locust asks when each task is carried out by a user of its own."""
    wrapper = script.parent / "wrapper.py"
    wrapper.write_text(WRAPPER.replace("SCRIPT", script.stem))
    all_requests = []
    for index in range(100):
        command = [locust, "-f", wrapper.name, "--headless", "-u", "1", "-r", "1", "-t", "30s", "--only-summary", "--exit-code-on-error", "0"]
        environment = os.environ | {"INDEX": str(index), "PYTHONPATH": str(script.parent)}
        run = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=script.parent, env=environment)
        requests = server.take()
        if run.returncode == 77:
            return all_requests
        if run.returncode != 0 or "Traceback" in run.stderr:
            sys.exit(f"{script.name}, task {index}: Locust ended with {run.returncode}:\n{run.stderr}")
        all_requests += requests
    sys.exit(f"{script.name} has too many tasks")


def plain(request: list[str]) -> list[str]:
    """A request without the headers that Locust adds, and without blanks in JSON."""
    *head, body = request
    head = [line for line in head if line not in OWN_HEADERS]
    if any(line.startswith("content-type: application/") and "json" in line for line in head) and body:
        body = kinds(json.dumps(json.loads(body), separators=(",", ":"), ensure_ascii=False))
    return [*head, body]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--plimsoll", default=str(ROOT / "target/debug/plimsoll"))
    parser.add_argument("--locust", default=shutil.which("locust"))
    parser.add_argument("--write", action="store_true", help="write the requests of Locust beside the files")
    parser.add_argument("files", nargs="*", type=pathlib.Path)
    given = parser.parse_args()
    files = given.files or sorted(path for path in FILES.glob("*.py") if path.stem != "unsupported")
    server, differ = Recorder(), 0
    for file in files:
        theirs, ours = of_both(
            file,
            ["py"],
            server,
            lambda own: of_locust(given.locust, own, server),
            lambda own: of_plan(given.plimsoll, own, ["locust", "--tasks", "1"], server),
        )
        theirs, ours = ([plain(request) for request in side] for side in (theirs, ours))
        if given.write:
            file.with_suffix(".requests").write_text(shown(theirs))
        differ += not is_same("Locust", file, theirs, ours)
    if differ:
        sys.exit(f"{differ} of {len(files)} files differ")
    print(f"all {len(files)} files make the same requests")


if __name__ == "__main__":
    main()
