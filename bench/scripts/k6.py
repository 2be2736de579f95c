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
import os
import pathlib
import re
import shutil
import subprocess
import sys

from recorder import Recorder, is_same, of_both, of_plan, shown

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "crates/import/tests/k6"
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
        # What comes before the first request of `setup` is not kept.
        "export const setup = () => {\n"
        f"  http.get('http://127.0.0.1:{server.server_port}/__begin');\n"
        "  return script.setup ? script.setup() : undefined;\n};\n"
        "export const teardown = (data) => (script.teardown ? script.teardown(data) : undefined);\n"
        f"export default function (data) {{\n{calls}}}\n"
    )
    given = [word for name, value in environments.items() for word in ("-e", f"{name}={value}")]
    command = [k6, "run", "--quiet", "--no-summary", "--no-usage-report", *given, str(wrapper)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120)
    if run.returncode != 0:
        sys.exit(f"{' '.join(command)}\nended with {run.returncode}:\n{run.stderr}")
    return server.take()


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
        theirs, ours = of_both(
            script,
            ["js", "ts"],
            server,
            lambda own: of_k6(given.k6, own, own.parent, server),
            lambda own: of_plan(given.plimsoll, own, ["k6"], server),
        )
        # Requests that are sent at once arrive in any order.
        if "http.batch" in script.read_text():
            theirs, ours = sorted(theirs), sorted(ours)
        if given.write:
            script.with_suffix(".requests").write_text(shown(theirs))
        differ += not is_same("k6", script, theirs, ours)
    if differ:
        sys.exit(f"{differ} of {len(scripts)} scripts differ")
    print(f"all {len(scripts)} scripts make the same requests")


if __name__ == "__main__":
    main()
