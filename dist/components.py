#!/usr/bin/env python3
"""What a program of Plimsoll is made of: an SBOM (CycloneDX 1.5), and the licences of all of it.

    components.py sbom TARGET      the SBOM on stdout
    components.py licences TARGET  names, licences and their texts on stdout

Which crates are in it is asked of `cargo tree`, which knows the features of one program; `cargo metadata`
resolves the whole workspace, tests and benchmarks too. Texts are read where cargo unpacked the crates.
"""

import hashlib
import html
import json
import os
import re
import subprocess
import sys
import tomllib
import uuid
from datetime import datetime, timezone
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = "plimsoll"
# Crates that are built for their sources: their code is in the program although cargo has them as
# dependencies of a build script.
BUNDLES = {"luajit-src"}
NOTICE = re.compile(r"(un)?licen[cs]e|copying|copyright|notice", re.IGNORECASE)
# Folders of a crate whose code is in no program.
ASIDE = {"tests", "test", "benches", "examples", "doc", "docs"}


def main():
    commands = {"sbom": sbom, "licences": licences}
    if len(sys.argv) != 3 or sys.argv[1] not in commands:
        sys.exit(f"usage: {sys.argv[0]} {'|'.join(commands)} TARGET")
    os.chdir(ROOT)
    sys.stdout.write(commands[sys.argv[1]](sys.argv[2]))


def cargo(*arguments):
    return subprocess.run(["cargo", *arguments], check=True, stdout=subprocess.PIPE, text=True).stdout


class Crates:
    """The crates of the program, as (name, version), and what each needs."""

    def __init__(self, target):
        metadata = json.loads(cargo("metadata", "--locked", "--format-version=1", "--filter-platform", target))
        self.packages = {(package["name"], package["version"]): package for package in metadata["packages"]}
        lock = tomllib.loads(Path("Cargo.lock").read_text())
        self.checksums = {
            (package["name"], package["version"]): package["checksum"]
            for package in lock["package"]
            if "checksum" in package
        }
        self.needs = edges(target, "normal,build")
        self.linked = set(edges(target, "normal,no-proc-macro"))
        self.linked |= {crate for crate in self.needs if crate[0] in BUNDLES}

    def foreign(self):
        """The crates of others, in order."""
        return [crate for crate in sorted(self.needs) if self.packages[crate]["source"] is not None]


def edges(target, kinds):
    """What each crate needs, by `cargo tree`: a crate that was there before stands without its needs."""
    lines = cargo(
        "tree", "--locked", "--package", PROGRAM, "--target", target, "--edges", kinds,
        "--prefix", "depth", "--format", "\t{p}",
    )  # fmt: skip
    needs, path = {}, []
    for line in lines.splitlines():
        depth, package = line.split("\t")
        name, version = package.split()[:2]
        crate = (name, version.removeprefix("v"))
        needs.setdefault(crate, set())
        del path[int(depth):]
        if path:
            needs[path[-1]].add(crate)
        path.append(crate)
    return needs


def expression(package):
    """The licence as an SPDX expression; older crates put a slash between alternatives."""
    if package["license"] is None:
        sys.exit(f"{package['name']} names no licence")
    return re.sub(r"\s*/\s*", " OR ", package["license"])


def parts():
    """What no manifest of cargo names: libraries of the toolchain, and packages of the page of reports."""
    documents = Path(run("rustc", "--print", "sysroot").strip()) / "share/doc/rust/licenses"
    common = Path("/usr/share/common-licenses")
    relinking = (
        "The C library is linked into the program as it is. Whoever wants another version of it in there\n"
        "builds the program anew from its sources, which are free and have a script for that (dist/build)."
    )
    files = lambda *paths: [clean(path.read_text(errors="replace")) for path in paths]  # noqa: E731
    yield {
        "name": "rust-std",
        "version": re.search(r"^release: (\S+)", run("rustc", "-vV"), re.MULTILINE).group(1),
        "description": "The standard library of Rust.",
        "license": "MIT OR Apache-2.0",
        "texts": files(documents / "MIT.txt", documents / "Apache-2.0.txt"),
    }
    yield {
        "name": "glibc",
        "version": run("ldd", "--version").split("\n")[0].rsplit(" ", 1)[1],
        "description": "The GNU C library, linked statically.",
        "license": "LGPL-2.1-or-later",
        "texts": [relinking, *files(Path("/usr/share/doc/libc6-dev/copyright"), common / "LGPL-2.1")],
    }
    yield {
        "name": "libgcc",
        "version": run("gcc", "-dumpfullversion").strip(),
        "description": "The runtime library of GCC, linked statically.",
        "license": "GPL-3.0-or-later WITH GCC-exception-3.1",
        "texts": files(documents / "GCC-exception-3.1.txt", common / "GPL-3"),
    }
    locked = json.loads((ROOT / "web/package-lock.json").read_text())["packages"]
    page = (ROOT / "crates/report/page/report.html").read_text()
    notices = html.unescape(re.search(r'class="licences".*?<pre[^>]*>(.*?)</pre>', page, re.DOTALL).group(1))
    for name in json.loads((ROOT / "web/package.json").read_text())["dependencies"]:
        # Others of them only build the page.
        if re.search(rf"^{re.escape(name)}\n\n", notices, re.MULTILINE) is None:
            continue
        package = locked[f"node_modules/{name}"]
        yield {
            "name": name,
            "version": package["version"],
            "purl": f"pkg:npm/{name}@{package['version']}",
            "description": "In the script of reports.",
            "license": package["license"],
            "texts": [clean(notices)],
        }


def run(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


# --- the SBOM ---


def reference(crate):
    return f"pkg:cargo/{crate[0]}@{crate[1].replace('+', '%2B')}"


def sbom(target):
    crates = Crates(target)
    program = next(crate for crate in crates.needs if crate[0] == PROGRAM)
    libraries = [component(crates, crate) for crate in sorted(crates.needs) if crate != program]
    base = []
    for part in parts():
        purl = part.get("purl", f"pkg:generic/{part['name']}@{part['version']}")
        base.append({
            "type": "library",
            "bom-ref": purl,
            "name": part["name"],
            "version": part["version"],
            "scope": "required",
            "licenses": [{"expression": part["license"]}],
            "description": part["description"],
            "purl": purl,
        })
    dependencies = [
        {"ref": reference(crate), "dependsOn": sorted(map(reference, needs))}
        for crate, needs in sorted(crates.needs.items())
    ]
    for dependency in dependencies:
        if dependency["ref"] == reference(program):
            dependency["dependsOn"] += [part["bom-ref"] for part in base]
    dependencies += [{"ref": part["bom-ref"]} for part in base]
    main = component(crates, program)
    main.pop("scope")
    main |= {"type": "application"}
    bom = {
        "$schema": "http://cyclonedx.org/schema/bom-1.5.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        # The same for the same content: a release that is built twice has one SBOM.
        "serialNumber": "urn:uuid:" + str(uuid.uuid5(uuid.NAMESPACE_URL, digest(libraries + base + [main]))),
        "version": 1,
        "metadata": {
            "timestamp": moment(),
            "tools": {"components": [{"type": "application", "name": "dist/components.py"}]},
            "component": main,
            "properties": [{"name": "cargo:target", "value": target}],
        },
        "components": libraries + base,
        "dependencies": dependencies,
    }
    return json.dumps(bom, indent=1, ensure_ascii=False) + "\n"


def component(crates, crate):
    package = crates.packages[crate]
    made = {
        "type": "library",
        "bom-ref": reference(crate),
        "name": crate[0],
        "version": crate[1],
        # Build dependencies are not in the program.
        "scope": "required" if crate in crates.linked else "excluded",
        "licenses": [{"expression": expression(package)}],
    }
    if package["description"]:
        made["description"] = " ".join(package["description"].split())
    if crate in crates.checksums:
        made["hashes"] = [{"alg": "SHA-256", "content": crates.checksums[crate]}]
        made["purl"] = reference(crate)
    if package["repository"]:
        made["externalReferences"] = [{"type": "vcs", "url": package["repository"]}]
    return made


def digest(value):
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def moment():
    """The instant of the commit, which `dist/build` gives; else now."""
    seconds = os.environ.get("SOURCE_DATE_EPOCH")
    at = datetime.now(timezone.utc) if seconds is None else datetime.fromtimestamp(int(seconds), timezone.utc)
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


# --- the licences ---


def licences(target):
    crates = Crates(target)
    index, users = [], {}
    for crate in crates.foreign():
        package = crates.packages[crate]
        label = f"{crate[0]} {crate[1]}"
        index.append(f"{label}: {expression(package)}")
        for text in dict.fromkeys(texts(package)):
            users.setdefault(text, []).append(label)
    for part in parts():
        label = f"{part['name']} {part['version']}"
        index.append(f"{label}: {part['license']}")
        for text in part["texts"]:
            users.setdefault(text, []).append(label)
    head = (
        "Plimsoll is Apache-2.0 OR MIT. Its program contains, or was built by, the following work of others.\n"
        "Their licences are below, each with those that it is of.\n"
    )
    bar = "=" * 100
    sections = [f"{bar}\n{', '.join(labels)}\n{bar}\n\n{text}\n" for text, labels in users.items()]
    return "\n".join([head, "\n".join(index) + "\n", *sections])


# The text of SPDX, below the line of the copyright.
BSD_3_CLAUSE = """\
Redistribution and use in source and binary forms, with or without modification, are permitted provided that the
following conditions are met:

1. Redistributions of source code must retain the above copyright notice, this list of conditions and the
   following disclaimer.

2. Redistributions in binary form must reproduce the above copyright notice, this list of conditions and the
   following disclaimer in the documentation and/or other materials provided with the distribution.

3. Neither the name of the copyright holder nor the names of its contributors may be used to endorse or promote
   products derived from this software without specific prior written permission.

THIS SOFTWARE IS PROVIDED BY THE COPYRIGHT HOLDERS AND CONTRIBUTORS "AS IS" AND ANY EXPRESS OR IMPLIED WARRANTIES,
INCLUDING, BUT NOT LIMITED TO, THE IMPLIED WARRANTIES OF MERCHANTABILITY AND FITNESS FOR A PARTICULAR PURPOSE ARE
DISCLAIMED. IN NO EVENT SHALL THE COPYRIGHT HOLDER OR CONTRIBUTORS BE LIABLE FOR ANY DIRECT, INDIRECT, INCIDENTAL,
SPECIAL, EXEMPLARY, OR CONSEQUENTIAL DAMAGES (INCLUDING, BUT NOT LIMITED TO, PROCUREMENT OF SUBSTITUTE GOODS OR
SERVICES; LOSS OF USE, DATA, OR PROFITS; OR BUSINESS INTERRUPTION) HOWEVER CAUSED AND ON ANY THEORY OF LIABILITY,
WHETHER IN CONTRACT, STRICT LIABILITY, OR TORT (INCLUDING NEGLIGENCE OR OTHERWISE) ARISING IN ANY WAY OUT OF THE USE
OF THIS SOFTWARE, EVEN IF ADVISED OF THE POSSIBILITY OF SUCH DAMAGE."""


def texts(package):
    """The notices of a crate, and of what it bundles. A crate without any is an error, not an omission."""
    folder = Path(package["manifest_path"]).parent
    found = []
    for parent, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in ASIDE)
        of_licences = re.search(r"licen[cs]es$", parent, re.IGNORECASE) is not None
        for name in sorted(files):
            is_code = name.endswith((".rs", ".c", ".h", ".py", ".go", ".html"))
            if (NOTICE.match(name) or of_licences) and not is_code:
                found.append(clean((Path(parent) / name).read_text(errors="replace")))
    return [text for text in found if text] or [standard(package)]


def clean(text):
    return "\n".join(line.rstrip() for line in text.splitlines()).strip()


def standard(package):
    """The text for a crate that was published without it: its licence is one of ours."""
    names = re.findall(r"[A-Za-z0-9.-]+", expression(package))
    if "Apache-2.0" in names:
        return clean((ROOT / "LICENSE-APACHE").read_text())
    if "MIT" in names and package["authors"]:
        own = clean((ROOT / "LICENSE-MIT").read_text())
        holders = "\n".join(f"Copyright (c) {author}" for author in package["authors"])
        text, count = re.subn(r"^Copyright.*$", lambda _: holders, own, flags=re.MULTILINE)
        if count == 1:
            return text
    if "BSD-3-Clause" in names and package["authors"]:
        holders = "\n".join(f"Copyright (c) {author}" for author in package["authors"])
        return f"{holders}\n\n{BSD_3_CLAUSE}"
    sys.exit(f"{package['name']} {package['version']} has no text of its licence, {expression(package)}")


if __name__ == "__main__":
    main()
