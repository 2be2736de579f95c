"""Runs Plimsoll against its built-in server, and makes a page of what it says.

What is shown is what was printed: a run that this machine was too busy for is shown as the run without a verdict
that it was. A run that ends in any other way than it may is an error.
"""

import contextlib
import fcntl
import html
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path

import pyte

# Seconds after which something is stuck. The longest run here takes some 20.
STUCK = 90
SCREEN = (36, 110)


class Gallery:
    def __init__(self, binary, folder):
        self.binary, self.folder = binary, folder
        self.work = Path(tempfile.mkdtemp(prefix="plimsoll-gallery-"))
        # Nothing of the user's: no settings, no history, no secrets of TLS.
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PLIMSOLL_")}
        kept.pop("SSLKEYLOGFILE", None)
        self.environment = kept | {"PLIMSOLL_STORE": str(self.work / "history.db"), "COLUMNS": str(SCREEN[1])}
        self.parts = []

    @contextlib.contextmanager
    def sink(self, *flags):
        """The built-in server, on a free port: its address. It stops by itself, too, if this is killed."""
        command = [self.binary, "sink", "--listen", "127.0.0.1:0", "-d", "120s", *flags]
        sink = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=self.environment)
        try:
            line = sink.stderr.readline()
            found = re.search(r"listening on (\S+)", line)
            if not found:
                sys.exit(f"the sink said: {line}")
            yield found[1]
        finally:
            sink.terminate()
            sink.wait()

    def run(self, title, words, command, codes):
        """Runs a command and shows what it prints; `codes` are those that it may end with."""
        print(f"{title}: plimsoll {' '.join(command)}", flush=True)
        ended = subprocess.run([self.binary, *command, "--quiet"] if command[0] == "find" else
                               [self.binary, *command], cwd=self.work, env=self.environment, text=True,
                               stdin=subprocess.DEVNULL, capture_output=True, timeout=STUCK)
        if ended.returncode not in codes:
            sys.exit(f"{title}: exit code {ended.returncode}\n{ended.stdout}{ended.stderr}")
        self.show(title, words)
        self.parts.append(f"```sh\n{printed(command)}\n```\n")
        self.parts.append(f"```text\n{ended.stdout.strip()}\n```\n")
        self.parts.append(f"Exit code {ended.returncode}.\n")
        return ended

    def show(self, title, words):
        self.parts.append(f"## {title}\n")
        self.parts.append(f"{words}\n")

    def screen(self, title, words, command):
        """Runs a command in a terminal, and pictures the screen when half of it is over."""
        print(f"{title}: plimsoll {' '.join(command)}", flush=True)
        shown = pyte.Screen(SCREEN[1], SCREEN[0])
        stream = pyte.ByteStream(shown)
        pid, terminal = pty.fork()
        if pid == 0:
            os.chdir(self.work)
            quiet = {name: value for name, value in self.environment.items() if name not in ("CI", "COLUMNS")}
            os.execve(self.binary, [self.binary, *command], quiet | {"TERM": "xterm-256color"})
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", *SCREEN, 0, 0))
        os.kill(pid, signal.SIGWINCH)
        begun, pages = time.monotonic(), None
        while True:
            if time.monotonic() - begun > STUCK:
                os.kill(pid, signal.SIGKILL)
                sys.exit(f"{title}: it did not end")
            if pages is None and time.monotonic() - begun > 6:
                pages = picture(shown)
            if terminal in select.select([terminal], [], [], 0.2)[0]:
                try:
                    piece = os.read(terminal, 65536)
                except OSError:
                    break
                if not piece:
                    break
                stream.feed(piece)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if status not in (0, 3) or pages is None or "requests" not in pages:
            sys.exit(f"{title}: exit code {status}, screen:\n" + "\n".join(shown.display))
        page = self.work / "screen.html"
        page.write_text(pages)
        self.show(title, words)
        self.parts.append(f"```sh\n{printed(command)}\n```\n")
        if self.photograph(page, "screen.png", (1010, 36 * 19 + 24)):
            self.parts.append("![The live screen](screen.png)\n")

    def photograph(self, page, name, size):
        """A picture of a page by a browser, if there is one."""
        chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
        if not chromium:
            if os.environ.get("PLIMSOLL_NO_SKIP"):
                sys.exit("there is no Chromium for pictures")
            print(f"no Chromium: the gallery has no {name}")
            return False
        picture_file = self.folder / name
        profile = tempfile.mkdtemp(dir=self.work)
        subprocess.run([chromium, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                        f"--user-data-dir={profile}", f"--window-size={size[0]},{size[1]}",
                        "--virtual-time-budget=4000", f"--screenshot={picture_file.resolve()}", page.as_uri()],
                       check=True, timeout=STUCK, stdin=subprocess.DEVNULL, capture_output=True)
        if picture_file.stat().st_size < 5_000:
            sys.exit(f"{name} is an empty picture")
        return True


def printed(command):
    """A command as one would type it."""
    plain = re.compile(r"[\w@%+=:,./-]+")
    return " ".join(["plimsoll", *(word if plain.fullmatch(word) else f"'{word}'" for word in command)])


def picture(screen):
    """A screen of a terminal as a page of HTML."""
    names = {"black": "#1e1e2e", "brightblack": "#7f849c", "red": "#f38ba8", "green": "#a6e3a1", "brown": "#f9e2af", "yellow": "#f9e2af",
             "blue": "#89b4fa", "magenta": "#f5c2e7", "cyan": "#94e2d5", "white": "#cdd6f4"}

    def colour(name, default):
        plain = names.get(name, names.get(name.removeprefix("bright")))
        return plain or (default if name == "default" else f"#{name}")

    rows = []
    for y in range(screen.lines):
        row = ""
        for x in range(screen.columns):
            letter = screen.buffer[y][x]
            front, back = colour(letter.fg, "#cdd6f4"), colour(letter.bg, "#1e1e2e")
            if letter.reverse:
                front, back = back, front
            weight = ";font-weight:bold" if letter.bold else ""
            row += f'<span style="color:{front};background:{back}{weight}">{html.escape(letter.data)}</span>'
        rows.append(row)
    style = "margin:0;padding:12px;background:#1e1e2e;font:15px/19px 'DejaVu Sans Mono',monospace"
    text = html.escape("\n".join(screen.display))
    return (f'<!doctype html><meta charset="utf-8"><!-- {text} --><body style="margin:0;background:#1e1e2e">'
            f'<pre style="{style}">' + "\n".join(rows) + "</pre>")


def make(gallery):
    usual = ("--delay", "lognormal:4ms,0.4")
    with gallery.sink(*usual) as address:
        url = f"http://{address}/"
        gallery.run("A run", "The report in the terminal: the outcome first, then whether it can be believed.",
                    ["run", url, "--rate", "500", "-d", "6s", "--threshold", "p99<25ms", "--threshold",
                     "errors<0.1%", "--report", "report.html"], (0, 3, 99))
        report = gallery.folder / "report.html"
        shutil.copy(gallery.work / "report.html", report)
        gallery.show("Its report as a page", "With `--report FILE`. It is one file, and needs no network.")
        if gallery.photograph(report.resolve(), "report.png", (1100, 1400)):
            gallery.parts.append("[![The report as a page](report.png)](report.html)\n")
        gallery.parts.append("[The page itself](report.html)\n")
        gallery.screen("The live screen", "While a run goes on, in a terminal.",
                       ["run", url, "--rate", "500", "-d", "8s", "--threshold", "p99<25ms"])
    with gallery.sink(*usual, "--fail", "5%:503") as address:
        gallery.run("A run that fails", "One request in twenty is answered with 503, which breaks a threshold.",
                    ["run", f"http://{address}/", "--rate", "500", "-d", "4s", "--threshold", "p99<25ms",
                     "--threshold", "errors<1%"], (99,))
    with gallery.sink("--delay", "2ms", "--capacity", "1000") as address:
        gallery.run("The highest rate that holds", "Of a server that answers 1,000 requests a second, and no more.",
                    ["find", f"http://{address}/", "--slo", "p99<25ms", "--from", "250", "-d", "1s", "--max-time",
                     "20s"], (0, 3, 99))
    with gallery.sink(*usual) as base, gallery.sink("--delay", "lognormal:5ms,0.4") as new:
        for name, address in (("base", base), ("new", new)):
            plan = (f"targets: {{api: 'http://{address}'}}\nrun: {{rate: 400, duration: 1s}}\n"
                    "scenarios: [{steps: [{get: /}]}]\n")
            (gallery.work / f"{name}.yaml").write_text(plan)
        gallery.run("Two builds compared", "The second answers a quarter slower. Runs take turns, and their "
                    "differences are judged.",
                    ["compare", "base.yaml", "new.yaml", "--runs", "5", "--metric", "p50", "--metric", "errors"],
                    (0, 3, 4))
    gallery.run("The demo", "A closed and an open run of five seconds each, and what to look at.",
                ["demo"], (0, 3))


def main():
    binary, folder = sys.argv[1], Path(sys.argv[2])
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    gallery = Gallery(binary, folder)
    try:
        version = subprocess.run([binary, "--version"], check=True, text=True, capture_output=True).stdout.strip()
        gallery.parts.append("# Gallery\n")
        gallery.parts.append(f"Made by `site/gallery` with {version}: what real runs against the built-in server "
                             "printed, on the machine that built this site.\n")
        make(gallery)
        # Last: a page that is there has all of its pictures.
        (folder / "README.md").write_text("\n".join(gallery.parts))
    finally:
        shutil.rmtree(gallery.work, ignore_errors=True)
    print(f"{folder}/README.md")


main()
