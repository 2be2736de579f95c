"""Programs whose CPU time the scripts beside this file measure."""

import os
import subprocess
import sys


def cpu_seconds(command: list[str], core: str) -> float:
    """Runs a command on a core; its CPU time, that of its threads and children included."""
    process = subprocess.Popen(
        ["taskset", "-c", core, *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    # 3 is a run whose verdict is that the machine was the limit, which is the point here.
    if process.returncode not in (0, 3):
        sys.exit(f"{' '.join(command)}\nended with {process.returncode}:\n{output}")
    return usage.ru_utime + usage.ru_stime
