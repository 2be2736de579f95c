"""Tests of the load test in continuous integration: its scripts, its action of GitHub, its template of GitLab; and of
the dashboard.

What depends on exit codes is tested with a program that ends as it is told. What Plimsoll does with real servers, with
the real program. The action and the template are carried out as their services do it, as far as they use them.
"""

import contextlib
import hashlib
import json
import math
import os
import re
import shutil
import socket
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent
BINARY = sys.argv.pop(1)

# Ends with the next of the codes in CODES, and writes what a run and a comparison write.
FAKE = """#!/usr/bin/env bash
printf '%s\\n' "$*" >>calls
verb=$1
while (($#)); do
  case $1 in
    --json) echo '{}' >"$2" ;;
    --out) echo "the ${2%%=*} of a run" >"${2#*=}" ;;
  esac
  shift
done
[[ $verb != compare ]] || { echo '### the comparison'; exit "$(<compare-code)"; }
code=$(head -1 codes)
sed -i 1d codes
exit "${code:-0}"
"""


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="plimsoll-ci-"))
        self.addCleanup(shutil.rmtree, self.folder)
        # Without the variables of a service that runs this, and without settings of runs.
        start = ("PLIMSOLL_", "LOAD_TEST_", "INSTALL_", "GITHUB_", "COMMENT_")
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith(start)}

    def script(self, name, *arguments, **variables):
        return subprocess.run([ROOT / "ci" / name, *arguments], cwd=self.folder, text=True, capture_output=True,
                              env=self.environment | variables, timeout=120)

    def executable(self, name, text):
        path = self.folder / name
        path.write_text(text)
        path.chmod(0o755)
        return str(path)

    def read(self, name):
        return (self.folder / name).read_text()


class ExitCodes(Case):
    """`ci/load-test` with a program that ends as it is told."""

    def ends(self, *codes, compare=None, **variables):
        (self.folder / "codes").write_text("".join(f"{code}\n" for code in codes))
        if compare is not None:
            (self.folder / "base").mkdir(exist_ok=True)
            (self.folder / "base/1.json").write_text("{}")
            (self.folder / "compare-code").write_text(f"{compare}\n")
            variables["LOAD_TEST_BASE"] = "base"
        variables = {"LOAD_TEST_PLAN": "p.yaml", "LOAD_TEST_RUNS": "2", "LOAD_TEST_RETRIES": "1"} | variables
        return self.script("load-test", LOAD_TEST_BINARY=self.executable("fake", FAKE), **variables).returncode

    def runs(self):
        return sorted(path.name for path in (self.folder / "load-test/runs").iterdir())

    def test_all_valid(self):
        self.assertEqual(self.ends(0, 0), 0)
        self.assertEqual(self.runs(), ["1.json", "2.json"])
        self.assertIn("Load test: passed", self.read("load-test/summary.md"))
        self.assertIn("no base was given", self.read("load-test/summary.md"))
        self.assertIn("the markdown of a run", self.read("load-test/summary.md"))

    def test_an_invalid_run_is_made_again(self):
        self.assertEqual(self.ends(3, 0, 0), 0)
        self.assertEqual(self.runs(), ["1.json", "2.json"])

    def test_too_many_invalid_runs(self):
        self.assertEqual(self.ends(3, 0, 3, 0), 3)
        self.assertIn("no verdict", self.read("load-test/summary.md"))
        self.assertIn("1 of 2 runs", self.read("load-test/summary.md"))

    def test_a_run_that_fails_ends_it(self):
        for code in (1, 2, 6, 99, 130, 143):
            self.assertEqual(self.ends(0, code, 0, compare=0), code)
            self.assertEqual(self.runs(), ["1.json"])
            self.assertIn("Not compared", self.read("load-test/summary.md"))
        self.assertNotIn("compare", self.read("calls"))

    def test_comparison(self):
        for code in (0, 2, 3, 4, 5):
            self.assertEqual(self.ends(0, 0, compare=code), code)
            self.assertIn("### the comparison", self.read("load-test/summary.md"))

    def test_a_base_without_runs(self):
        self.assertEqual(self.ends(0, 0, LOAD_TEST_BASE="nowhere"), 0)
        self.assertIn("the base has no runs yet", self.read("load-test/summary.md"))

    def test_runs_of_before_are_not_taken_for_new_ones(self):
        self.assertEqual(self.ends(0, 0), 0)
        self.assertEqual(self.ends(99), 99)
        self.assertEqual(self.runs(), [])

    def test_flags(self):
        self.ends(0, 0, compare=0, LOAD_TEST_THRESHOLDS="  p99<1s\n\nerrors<1%\n", LOAD_TEST_FLAGS="--rate\n5",
                  LOAD_TEST_METRICS="p50\nerrors", LOAD_TEST_EFFECT="10%", LOAD_TEST_STRICT="true")
        run, _, compare = self.read("calls").splitlines()
        self.assertTrue(run.startswith("run p.yaml --rate 5 --threshold p99<1s --threshold errors<1% --quiet"), run)
        self.assertEqual(compare, "compare base load-test/runs --effect 10% --metric p50 --metric errors --strict "
                                  "--output markdown")

    def test_mistakes(self):
        for variables in ({"LOAD_TEST_PLAN": ""}, {"LOAD_TEST_RUNS": "0"}, {"LOAD_TEST_RUNS": "many"},
                          {"LOAD_TEST_RETRIES": "-1"}):
            self.assertEqual(self.ends(0, 0, **variables), 2, variables)
        absent = self.script("load-test", LOAD_TEST_PLAN="p.yaml", LOAD_TEST_BINARY="./absent")
        self.assertEqual(absent.returncode, 2)


@contextlib.contextmanager
def ending(process):
    """Ends a process behind a block."""
    try:
        yield
    finally:
        process.terminate()
        process.communicate()


@contextlib.contextmanager
def sink(*flags):
    """The built-in server on a free port. It ends by itself, too."""
    command = [BINARY, "sink", "--listen", "127.0.0.1:0", "-d", "120s", *flags]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    with ending(process):
        yield "http://" + re.search(r"listening on (\S+)", process.stderr.readline())[1]


class RealRuns(Case):
    """`ci/load-test` with the program, the plan of the examples, and the built-in server."""

    def load_test(self, url, **variables):
        # Shorter than the plan: this does not test the precision. On a busy machine some runs are invalid.
        done = self.script("load-test", "-d", "2s", "--warmup", "200ms", LOAD_TEST_BINARY=BINARY, TARGET=url,
                           LOAD_TEST_PLAN=str(ROOT / "examples/ci/plan.yaml"), LOAD_TEST_RETRIES="12",
                           LOAD_TEST_SUMMARY="appended.md", **variables)
        if done.returncode == 3:
            # The message is tested all the same. The gate counts invalid runs over all tests.
            self.assertIn("no verdict", self.read("appended.md"))
            self.skipTest("this machine is too busy: 13 runs and more had no verdict")
        return done

    def test_a_regression_is_found(self):
        with sink("--delay", "lognormal:4ms,0.4") as url:
            passed = self.load_test(url, LOAD_TEST_RUNS="3")
        self.assertEqual(passed.returncode, 0, passed.stdout + passed.stderr)
        self.assertIn("## Load test: passed", self.read("appended.md"))
        self.assertIn("PASS", self.read("load-test/report.md"))
        self.assertIn("<testsuite", self.read("load-test/junit.xml"))
        (self.folder / "load-test/runs").rename(self.folder / "base")
        with sink("--delay", "lognormal:40ms,0.4") as url:
            worse = self.load_test(url, LOAD_TEST_RUNS="3", LOAD_TEST_BASE="base", LOAD_TEST_METRICS="p50")
        self.assertEqual(worse.returncode, 4, worse.stdout + worse.stderr)
        self.assertIn("## Load test: worse than the base", self.read("load-test/summary.md"))
        self.assertRegex(self.read("load-test/summary.md"), r"p50.*worse")

    def test_a_threshold_fails(self):
        # Error answers of the server itself are proven on any machine.
        with sink("--fail", "20%:503") as url:
            failed = self.load_test(url)
        self.assertEqual(failed.returncode, 99, failed.stdout + failed.stderr)
        self.assertIn("## Load test: failed, a threshold does not hold", self.read("appended.md"))
        self.assertEqual(list((self.folder / "load-test/runs").iterdir()), [])
        self.assertTrue((self.folder / "load-test/failed.json").exists())


class Release(Case):
    """A release in a folder, as it is on a server."""

    VERSION = "9.8.7"

    def release(self, program="#!/bin/sh\necho plimsoll 9.8.7\n"):
        name = f"plimsoll-{self.VERSION}-{os.uname().machine}-unknown-linux-gnu"
        at = self.folder / "releases" / f"v{self.VERSION}"
        (at / name).mkdir(parents=True)
        (at / name / "plimsoll").write_text(program)
        (at / name / "plimsoll").chmod(0o755)
        archive = at / f"{name}.tar.gz"
        with tarfile.open(archive, "w:gz") as tar:
            tar.add(at / name, name)
        self.sum = hashlib.sha256(archive.read_bytes()).hexdigest()
        (at / "SHA256SUMS").write_text(f"{'0' * 64}  other.tar.gz\n{self.sum}  {archive.name}\n")
        self.key = self.new_key("key")
        self.sign(at, self.key)
        return archive

    def openssl(self, *arguments):
        subprocess.run(["openssl", *arguments], check=True, capture_output=True)

    def new_key(self, name):
        """A private key that is thrown away; the public one is beside it."""
        key = str(self.folder / name)
        self.openssl("genpkey", "-algorithm", "ed25519", "-out", key)
        self.openssl("pkey", "-in", key, "-pubout", "-out", f"{key}.pub")
        return key

    def sign(self, at, key):
        self.openssl("pkeyutl", "-sign", "-inkey", key, "-rawin", "-in", str(at / "SHA256SUMS"),
                     "-out", str(at / "SHA256SUMS.sig"))

    def url(self):
        return f"file://{self.folder}/releases"


class Install(Release):
    def install(self, **variables):
        return self.script("install", **{"INSTALL_VERSION": self.VERSION, "INSTALL_FROM": self.url(),
                                         "INSTALL_KEY": f"{self.key}.pub",
                                         "INSTALL_FOLDER": str(self.folder / "bin")} | variables)

    def refused(self, reason, **variables):
        done = self.install(**variables)
        self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr)
        self.assertIn(reason, done.stderr)
        self.assertFalse((self.folder / "bin/plimsoll").exists())

    def test_a_release(self):
        self.release()
        # A checksum that is written down needs no signature.
        for variables in ({}, {"INSTALL_SHA256": self.sum, "INSTALL_KEY": "absent"}):
            done = self.install(**variables)
            self.assertEqual((done.returncode, done.stdout), (0, f"{self.folder}/bin/plimsoll\n"), done.stderr)
            (self.folder / "bin/plimsoll").unlink()

    def test_what_is_not_installed(self):
        archive = self.release()
        wrong = [{"INSTALL_SHA256": "1" * 64}, {"INSTALL_SHA256": "short"}, {"INSTALL_VERSION": "9.9.9"},
                 {"INSTALL_VERSION": "../9.8.7"}, {"INSTALL_FROM": "http://127.0.0.1:1"}]
        for variables in wrong:
            self.assertNotEqual(self.install(**variables).returncode, 0, variables)
        archive.write_bytes(archive.read_bytes() + b"damage")
        self.refused("does not have the checksum")
        (archive.parent / "SHA256SUMS").write_text(f"{'0' * 64}  other.tar.gz\n")
        self.sign(archive.parent, self.key)
        self.refused("no checksum of")

    def test_a_release_with_another_signature_or_none(self):
        archive = self.release()
        at = archive.parent
        program, sums, signature = (path.read_bytes() for path in (archive, at / "SHA256SUMS", at / "SHA256SUMS.sig"))
        # Somebody with access to the files replaces the program and its checksum.
        archive.write_bytes(program + b"worse")
        forged = hashlib.sha256(archive.read_bytes()).hexdigest()
        (at / "SHA256SUMS").write_text(f"{forged}  {archive.name}\n")
        self.refused("not signed by the key of the releases")
        self.sign(at, self.new_key("another"))
        self.refused("not signed by the key of the releases")
        for wrong in (b"", b"x", signature[:-1], signature[:-1] + bytes([signature[-1] ^ 1]), signature * 2):
            (at / "SHA256SUMS.sig").write_bytes(wrong)
            self.refused("not signed by the key of the releases")
        (at / "SHA256SUMS.sig").unlink()
        self.refused("the release is not signed")
        for path, content in ((archive, program), (at / "SHA256SUMS", sums), (at / "SHA256SUMS.sig", signature)):
            path.write_bytes(content)
        self.assertEqual(self.install().returncode, 0)

    def test_the_key_of_the_releases(self):
        self.release()
        # Without another one it is that of the repository, which has not signed this.
        self.refused("not signed by the key of the releases", INSTALL_KEY="")
        self.refused("there is no key absent", INSTALL_KEY="absent")
        (self.folder / "no-key").write_text("x")
        self.refused("no public key in PEM", INSTALL_KEY="no-key")
        public = "".join((ROOT / "dist/release.pub").read_text().splitlines()[1:-1])
        self.assertIn(f"\nrelease_key={public}\n", (ROOT / "ci/install").read_text())
        self.openssl("pkey", "-pubin", "-in", str(ROOT / "dist/release.pub"), "-noout")
        private = ["git", "-C", str(ROOT), "grep", "-lE", "^-----BEGIN [A-Z ]*PRIVATE KEY-----$", "--", "dist", "ci"]
        self.assertEqual(subprocess.run(private, capture_output=True, text=True).stdout, "")

    def test_without_the_program_that_checks_signatures(self):
        self.release()
        for version in ("exit 127", "echo OpenSSL 1.1.1w  11 Sep 2023", "echo LibreSSL 3.8.2"):
            self.executable("openssl", f"#!/bin/sh\n{version}\n")
            self.refused("OpenSSL 3 checks the signature", PATH=f"{self.folder}:{os.environ['PATH']}")


class Sign(Release):
    """`dist/sums`, `dist/sign` and `dist/key`, in a copy of the repository whose key is thrown away."""

    def setUp(self):
        super().setUp()
        for name in ("dist/sums", "dist/sign", "dist/key", "ci/install"):
            (self.folder / "copy" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, self.folder / "copy" / name)
        done = self.dist("key", str(self.folder / "secret"))
        self.assertEqual(done.returncode, 0, done.stderr)

    def dist(self, name, *arguments, **variables):
        return subprocess.run([self.folder / "copy/dist" / name, *arguments], cwd=self.folder, text=True,
                              env=self.environment | variables, capture_output=True, timeout=60)

    def test_what_is_signed_is_installed(self):
        at = self.release().parent
        shutil.rmtree(next(path for path in at.iterdir() if path.is_dir()))
        self.assertEqual(self.dist("sums", str(at)).returncode, 0)
        self.assertFalse((at / "SHA256SUMS.sig").exists(), "a signature of earlier sums")
        done = self.dist("sign", str(at), RELEASE_KEY=self.read("secret"))
        self.assertEqual(done.returncode, 0, done.stderr)
        install = subprocess.run([self.folder / "copy/ci/install"], cwd=self.folder, text=True, capture_output=True,
                                 env=self.environment | {"INSTALL_VERSION": self.VERSION, "INSTALL_FROM": self.url(),
                                                         "INSTALL_FOLDER": str(self.folder / "bin")}, timeout=60)
        self.assertEqual(install.returncode, 0, install.stderr)

    def test_what_is_not_signed(self):
        at = self.release().parent
        shutil.rmtree(next(path for path in at.iterdir() if path.is_dir()))
        self.assertEqual(self.dist("sums", str(at)).returncode, 0)
        secret = self.read("secret")
        for reason, variables in (("has no private key", {}), ("no private key of Ed25519", {"RELEASE_KEY": "x"}),
                                  ("not the key of dist/release.pub", {"RELEASE_KEY": self.read("key")})):
            done = self.dist("sign", str(at), **variables)
            self.assertEqual(done.returncode, 1, reason)
            self.assertIn(reason, done.stderr)
        (at / "added.tar.gz").write_text("x")
        self.dist("sums", str(at))
        (at / "added.tar.gz").write_text("y")
        done = self.dist("sign", str(at), RELEASE_KEY=secret)
        self.assertIn("not those of SHA256SUMS", done.stderr)
        self.assertFalse((at / "SHA256SUMS.sig").exists())

    def test_a_private_key_does_not_get_into_the_repository(self):
        for place in (self.folder / "copy/dist/secret", self.folder / "secret"):
            before = (self.folder / "copy/dist/release.pub").read_text()
            self.assertEqual(self.dist("key", str(place)).returncode, 2)
            self.assertEqual((self.folder / "copy/dist/release.pub").read_text(), before)
        self.assertFalse((self.folder / "copy/dist/secret").exists())


class Image(Case):
    """`dist/image --from`, with a program that stands for buildah."""

    def image(self, *arguments):
        staged = self.folder / "plimsoll-9.8.7-x86_64-unknown-linux-gnu"
        staged.mkdir(exist_ok=True)
        (staged / "plimsoll").write_text("")
        (staged / "plimsoll").chmod(0o755)
        self.executable("buildah", f"#!/bin/sh\nprintf '%s\\n' \"$*\" >>{self.folder}/calls\n")
        return subprocess.run([ROOT / "dist/image", staged, *arguments], text=True, capture_output=True, timeout=60,
                              env=self.environment | {"PATH": f"{self.folder}:{os.environ['PATH']}"})

    def test_a_base_is_given_by_its_digest(self):
        digest = f"sha256:{'a1' * 32}"
        for base in ("rust:1.95-bookworm", "rust", f"rust:1.95@{digest[:-1]}", f"rust@{digest} x", f"@{digest}"):
            done = self.image("--from", base)
            self.assertEqual(done.returncode, 2, base)
            self.assertIn("is not given by its digest", done.stderr)
        self.assertFalse((self.folder / "calls").exists())
        self.image("--from", f"rust:1.95-bookworm@{digest}")
        self.assertIn(f"--build-arg BASE=rust:1.95-bookworm@{digest} ", self.read("calls"))
        self.assertRegex((ROOT / "Dockerfile").read_text(), r"\nARG BASE=\S+\nFROM \$\{BASE\} AS build\n")


# A program that stands for gh: it notes what it is asked, and keeps one comment.
GH = """#!/usr/bin/env bash
printf '%s\\n' "$*" >>gh-calls
case $* in
  *--jq*) [[ ! -e comment ]] || echo 77 ;;
  *PATCH*77* | *POST*) for word; do case $word in body=@*) cat "${word#body=@}" >comment ;; esac; done ;;
  *) exit 1 ;;
esac
"""


class Comment(Case):
    def comment(self, gh=GH, **variables):
        self.executable("gh", gh)
        return self.script("comment", "summary.md", PATH=f"{self.folder}:{os.environ['PATH']}", GH_TOKEN="t",
                           GITHUB_REPOSITORY="o/r", **{"COMMENT_NUMBER": "5"} | variables)

    def test_the_second_goes_into_the_first(self):
        (self.folder / "summary.md").write_text("one")
        self.assertEqual(self.comment(COMMENT_NAME='a"b').returncode, 0)
        self.assertEqual(self.read("comment"), "<!-- plimsoll: a_b -->\none")
        (self.folder / "summary.md").write_text("ä" * 40_000)
        self.assertEqual(self.comment().returncode, 0)
        self.assertTrue(self.read("comment").endswith("the rest is in the summary of the job.\n"))
        self.assertLess(len(self.read("comment").encode()), 65_536)
        verbs = re.findall("POST|PATCH", self.read("gh-calls"))
        self.assertEqual(verbs, ["POST", "PATCH"])

    def test_where_the_comments_cannot_be_had_none_is_made(self):
        (self.folder / "summary.md").write_text("one")
        self.assertNotEqual(self.comment(GH.replace("echo 77", "false").replace("||", "&&")).returncode, 0)
        self.assertNotIn("POST", self.read("gh-calls"))
        self.assertNotEqual(self.comment(COMMENT_NUMBER="x").returncode, 0)


class Action(Release):
    """`action.yml`, carried out as GitHub does it: inputs, expressions, steps."""

    def carry_out(self, inputs, event=None):
        action = yaml.safe_load((ROOT / "action.yml").read_text())
        given = {name: known.get("default", "") for name, known in action["inputs"].items()} | inputs
        self.assertEqual(set(given), set(action["inputs"]), "an input that is not there")
        steps, status = {}, 0
        context = {"github.server_url": "file://server", "github.action_repository": "o/plimsoll",
                   "github.repository": "o/r", "runner.temp": str(self.folder / "temp"),
                   "github.event.pull_request.number": event}

        def value(term):
            term = term.strip()
            if term.startswith("'"):
                return term.strip("'")
            if term.startswith("inputs."):
                return given[term.removeprefix("inputs.")]
            if term.startswith("steps."):
                _, step, _, name = term.split(".")
                return steps.get(step, {}).get(name, "")
            if term.startswith("format("):
                return "file://server/o/plimsoll/releases/download"
            if term == "!cancelled()":
                return True
            return context[term]

        def expression(text):
            """`a && b` and `a || b` of values and comparisons: what the action uses."""
            def term(part):
                found = re.fullmatch(r"(\S+) (==|!=) ('[^']*')", part.strip())
                if not found:
                    return value(part)
                return (value(found[1]) == value(found[3])) == (found[2] == "==")

            for operator in (" && ", " || "):
                # The inner || of `format(…)` is ignored.
                parts = text.split(operator) if "format(" not in text else text.split(operator, 1)
                if len(parts) > 1:
                    last = ""
                    for part in parts:
                        last = term(part)
                        if bool(last) == (operator == " || "):
                            break
                    return last
            return term(text)

        def filled(text):
            return re.sub(r"\$\{\{ (.*?) \}\}", lambda found: str(expression(found[1])), str(text))

        for step in action["runs"]["steps"]:
            self.assertEqual(step["shell"], "bash")
            condition = step.get("if")
            if condition:
                wanted = expression(re.fullmatch(r"\$\{\{ (.*) \}\}", condition)[1])
            else:
                wanted = True
            # By default, a step is not run after one that failed.
            if not wanted or (status and "cancelled()" not in (condition or "")):
                continue
            output = self.folder / "output"
            output.write_text("")
            variables = {name: filled(text) for name, text in step.get("env", {}).items()}
            variables |= {"GITHUB_OUTPUT": str(output), "GITHUB_STEP_SUMMARY": str(self.folder / "step-summary.md"),
                          "GITHUB_ACTION_PATH": str(ROOT), "GITHUB_REPOSITORY": "o/r",
                          "PATH": f"{self.folder}:{os.environ['PATH']}"}
            ended = subprocess.run(["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
                                   cwd=self.folder, env=self.environment | variables, text=True,
                                   capture_output=True, timeout=60)
            said = dict(line.split("=", 1) for line in output.read_text().splitlines())
            steps[step.get("id", "")] = said
            if ended.returncode and not step.get("continue-on-error"):
                status = ended.returncode
                self.said = ended.stdout + ended.stderr
        outputs = {name: filled(known["value"]) for name, known in action["outputs"].items()}
        return status, outputs

    def test_with_a_program(self):
        self.executable("gh", GH)
        (self.folder / "codes").write_text("0\n99\n")
        inputs = {"binary": self.executable("fake", FAKE), "plan": "p.yaml", "github-token": "t", "runs": "2"}
        status, outputs = self.carry_out(inputs, event=5)
        self.assertEqual((status, outputs), (99, {"exit-code": "99", "runs": "load-test/runs"}))
        self.assertIn("a threshold does not hold", self.read("step-summary.md"))
        self.assertIn("a threshold does not hold", self.read("comment"))

    def test_with_a_release(self):
        self.release(FAKE)
        (self.folder / "codes").write_text("")
        inputs = {"version": self.VERSION, "releases": self.url(), "plan": "p.yaml", "sha256": self.sum}
        status, outputs = self.carry_out(inputs)
        self.assertEqual((status, outputs["exit-code"]), (0, "0"))
        self.assertEqual(len(list((self.folder / "load-test/runs").iterdir())), 5)
        self.assertFalse((self.folder / "gh-calls").exists())

    def test_without_a_release(self):
        status, outputs = self.carry_out({"version": "9.9.9", "plan": "p.yaml"})
        self.assertEqual((status, outputs["exit-code"]), (1, ""))
        self.assertIn("file://server/o/plimsoll/releases/download/v9.9.9/", self.said)

    def test_of_a_pull_request_whose_token_may_not_write(self):
        self.executable("gh", "#!/bin/sh\nexit 1\n")
        (self.folder / "codes").write_text("0\n0\n")
        inputs = {"binary": self.executable("fake", FAKE), "plan": "p.yaml", "github-token": "t", "runs": "2"}
        self.assertEqual(self.carry_out(inputs, event=5)[0], 0)

    def test_the_workflow_of_the_examples(self):
        """actionlint reads it, with the action beside it, whose inputs it then knows."""
        actionlint = shutil.which("actionlint")
        if not actionlint:
            self.skipTest("actionlint is not installed")
        workflows = self.folder / ".github/workflows"
        workflows.mkdir(parents=True)
        (self.folder / ".git").mkdir()
        shutil.copy(ROOT / "action.yml", self.folder)
        text = (ROOT / "examples/ci/github.yml").read_text()
        right = re.sub(r"uses: OWNER/plimsoll@\S+", "uses: ./", text)
        self.assertNotEqual(right, text)

        def lint(workflow):
            (workflows / "load-test.yml").write_text(workflow)
            return subprocess.run([actionlint, "-no-color"], cwd=self.folder, text=True, capture_output=True)

        found = lint(right)
        self.assertEqual(found.returncode, 0, found.stdout + found.stderr)
        self.assertIn("thresolds", lint(right.replace("effect: 25%", "thresolds: x")).stdout)


class Template(Release):
    """`ci/gitlab.yml` and the job that extends it, carried out as GitLab does it."""

    class Loader(yaml.SafeLoader):
        """Knows `!reference [job, key]`."""

    Loader.add_constructor("!reference", lambda loader, node: {"reference": loader.construct_sequence(node)})

    def job(self):
        template = yaml.load((ROOT / "ci/gitlab.yml").read_text(), self.Loader)
        example = yaml.load((ROOT / "examples/ci/gitlab-ci.yml").read_text(), self.Loader)
        job = template[example["load"]["extends"]] | example["load"]
        job["variables"] = template[".load-test"]["variables"] | example["load"]["variables"]
        lines = []
        for line in job["before_script"] + job["script"]:
            refers = isinstance(line, dict)
            lines += template[line["reference"][0]][line["reference"][1]] if refers else [line]
        return job, lines

    def carry_out(self, lines, variables):
        # The job's variables are filled in, and one shell carries out all lines.
        known = dict(variables)
        for name, text in known.items():
            known[name] = re.sub(r"\$(\w+)", lambda found: known.get(found[1], ""), str(text))
        script = "\n".join(lines)
        return subprocess.run(["bash", "-eo", "pipefail", "-c", script], cwd=self.folder, text=True,
                              env=self.environment | known, capture_output=True, timeout=60)

    def test_the_job_of_the_examples(self):
        self.release(FAKE)
        # The repository of Plimsoll, of which a version is cloned.
        origin = self.folder / "origin"
        shutil.copytree(ROOT / "ci", origin / "ci")
        git = ["git", "-C", str(origin), "-c", "user.name=t", "-c", "user.email=t@example.com", "-c",
               "commit.gpgsign=false"]
        for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "x"], ["tag", f"v{self.VERSION}"]):
            subprocess.run([*git, *command], check=True, capture_output=True)
        self.executable("start-server.sh", "#!/bin/sh\n")
        job, lines = self.job()
        # There is no server here, which a fake program does not need.
        waiting = [line for line in lines if line.startswith("timeout 60")]
        self.assertEqual(len(waiting), 1)
        lines = [line for line in lines if line not in waiting]
        variables = job["variables"] | {
            "LOAD_TEST_REPOSITORY": f"file://{origin}", "INSTALL_FROM": self.url(),
            "LOAD_TEST_VERSION": self.VERSION, "INSTALL_SHA256": self.sum, "CI_COMMIT_BRANCH": "main",
            "CI_DEFAULT_BRANCH": "main"}
        (self.folder / "codes").write_text("")
        done = self.carry_out(lines, variables)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(len(list((self.folder / "load-test-base").iterdir())), 5)
        # A branch is compared with that, and leaves it as it is.
        (self.folder / "compare-code").write_text("4")
        before = (self.folder / "load-test-base/1.json").stat().st_ino
        worse = self.carry_out(lines, variables | {"CI_COMMIT_BRANCH": "change"})
        self.assertEqual(worse.returncode, 4, worse.stdout + worse.stderr)
        self.assertIn("compare load-test-base load-test/runs --effect 25% --metric p50 --metric errors",
                      self.read("calls"))
        self.assertEqual((self.folder / "load-test-base/1.json").stat().st_ino, before)
        # A program with another checksum is not run.
        calls = self.read("calls")
        other = self.carry_out(lines, variables | {"INSTALL_SHA256": "1" * 64})
        self.assertEqual(other.returncode, 1, other.stdout + other.stderr)
        self.assertEqual(self.read("calls"), calls)
        # The job keeps the files that are written.
        for path in (*job["artifacts"]["paths"], job["artifacts"]["reports"]["junit"], *job["cache"]["paths"]):
            self.assertTrue((self.folder / path).exists(), path)


class Dashboard(Case):
    """`examples/grafana/plimsoll.json`, asked of a real Prometheus that reads two generators.

    That its names are exported is tested with the exporter; this is whether the queries are right as a whole.
    """

    RATE = 100

    def test_every_query_has_an_answer(self):
        if not shutil.which("prometheus"):
            if os.environ.get("PLIMSOLL_NO_SKIP"):
                self.fail("there is no Prometheus")
            self.skipTest("there is no Prometheus")
        dashboard = json.loads((ROOT / "examples/grafana/plimsoll.json").read_text())
        queries = [(panel["title"], target["expr"]) for panel in dashboard["panels"]
                   for target in panel.get("targets", [])]
        self.assertGreater(len(queries), 20)
        with contextlib.ExitStack() as stack:
            url = stack.enter_context(sink("--delay", "lognormal:4ms,0.4", "--fail", "20%:503"))
            targets = [stack.enter_context(self.generator(url)) for _ in range(2)]
            servers = [stack.enter_context(self.prometheus(targets, *flags))
                       for flags in ((), ("--enable-feature=native-histograms",))]
            for server in servers:
                self.check(server, queries)

    def check(self, server, queries):
        """Asks until what is asked for has been seen for long enough; the run is over some time later."""
        end = time.monotonic() + 30
        while True:
            answers = {query: self.ask(server, query) for query in queries}
            # That is known at the end only.
            absent = [query for query, found in answers.items() if not found and "plimsoll_valid" not in query[1]]
            alone = {title: found[0] for (title, _), found in answers.items() if len(found) == 1}
            # Of both together, as far as a busy machine carries it.
            arrived = alone.get("Responses", 0) > 1.7 * self.RATE
            if (arrived and not absent) or time.monotonic() > end:
                break
            time.sleep(0.5)
        self.assertEqual(absent, [])
        self.assertTrue(arrived, alone)
        self.assertLess(alone["Responses"], 2.3 * self.RATE)
        self.assertEqual(alone["Generators"], 2)
        self.assertGreater(alone["Failed or timed out"], 0.1)
        self.assertLess(alone["Failed or timed out"], 0.3)
        self.assertGreater(alone["Response time p99"], 0.004)

    @contextlib.contextmanager
    def generator(self, url):
        command = [BINARY, "run", url, "--rate", str(self.RATE), "-d", "80s", "--prometheus", "127.0.0.1:0"]
        process = subprocess.Popen(command, cwd=self.folder, env=self.environment, text=True,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
        with ending(process):
            yield re.search(r"http://(\S+)/metrics", process.stderr.readline())[1]

    @contextlib.contextmanager
    def prometheus(self, targets, *flags):
        folder = Path(tempfile.mkdtemp(dir=self.folder))
        scrape = {"job_name": "plimsoll", "scrape_interval": "1s", "static_configs": [{"targets": targets}]}
        (folder / "prometheus.yml").write_text(json.dumps({"scrape_configs": [scrape]}))
        # It does not tell which port it took for 0.
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{free.getsockname()[1]}"
        process = subprocess.Popen(["prometheus", f"--config.file={folder}/prometheus.yml",
                                    f"--storage.tsdb.path={folder}/data", f"--web.listen-address={address}", *flags],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with ending(process):
            yield address

    def ask(self, server, query):
        """The values that a query has now, with what Grafana puts in the place of its variables."""
        expression = re.sub(r"\$(job|instance|phase|step)\b", ".*", query[1]).replace("$__rate_interval", "8s")
        self.assertNotIn("$", expression)
        asked = f"http://{server}/api/v1/query?" + urllib.parse.urlencode({"query": expression})
        try:
            with urllib.request.urlopen(asked, timeout=10) as answer:
                found = json.load(answer)["data"]["result"]
        except urllib.error.HTTPError as error:
            # Until it is ready it says so.
            if error.code == 503:
                return []
            self.fail(f"{query}: {error.read().decode()}")
        except urllib.error.URLError:
            return []
        values = [float(series["value"][1]) for series in found]
        return [value for value in values if math.isfinite(value)]


unittest.main()
