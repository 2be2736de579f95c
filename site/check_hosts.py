"""Fails if a page, style or script of a built site has a browser fetch something from another host.

A link that a reader follows is no such thing. What a script might fetch cannot be told from its text in general; the
scripts are those of the theme, and the addresses in them that are known to do no harm are listed here, so that a new
one is looked at.
"""

import re
import sys
from html.parser import HTMLParser
from pathlib import Path

# Attributes by which an element loads something. `a` and `link rel=canonical` do not.
LOADS = {("script", "src"), ("img", "src"), ("img", "srcset"), ("iframe", "src"), ("source", "src"),
         ("source", "srcset"), ("video", "src"), ("audio", "src"), ("object", "data"), ("embed", "src"),
         ("link", "href"), ("use", "href"), ("use", "xlink:href"), ("image", "href"), ("form", "action")}
ELSEWHERE = re.compile(r"\s*(?:[a-z]+:)?//", re.IGNORECASE)
CSS = re.compile(r"""(?:url\(\s*['"]?|@import\s+['"])((?:https?:)?//[^'")\s]+)""", re.IGNORECASE)
SCRIPT = re.compile(r"""["'`](?:https?:)?//([a-z0-9.-]+\.[a-z]{2,})[^"'`\s]*""", re.IGNORECASE)
# Names in the theme's scripts, and when they are asked.
HARMLESS = {
    "www.w3.org": "names of XML",
    "api.github.com": "only with repo_url, which is not set",
    "gitlab.com": "only with repo_url, which is not set",
    "unpkg.com": "diagrams of Mermaid, of which there are none: a page with one is refused",
}


class Page(HTMLParser):
    def __init__(self, name):
        super().__init__()
        self.name, self.problems, self.style = name, [], False

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.style = tag == "style"
        if tag == "link" and values.get("rel") in ("canonical", "alternate", "prev", "next"):
            return
        for name, value in attributes:
            if (tag, name) in LOADS and value and ELSEWHERE.match(value):
                self.problems.append(f"{self.name}: <{tag} {name}={value}>")
            if name == "style" and CSS.search(value or ""):
                self.problems.append(f"{self.name}: style {value}")
        if "mermaid" in (values.get("class") or "").split():
            self.problems.append(f"{self.name}: a diagram of Mermaid, whose script is on another host")

    def handle_data(self, data):
        if self.style:
            self.problems += [f"{self.name}: {found}" for found in CSS.findall(data)]

    def handle_endtag(self, tag):
        self.style = False


def complaints(path, name):
    text = path.read_text(errors="replace")
    if path.suffix == ".html":
        page = Page(name)
        page.feed(text)
        return page.problems
    if path.suffix == ".css":
        return [f"{name}: {found}" for found in CSS.findall(text)]
    if path.suffix == ".js":
        hosts = sorted(set(SCRIPT.findall(text)) - set(HARMLESS))
        return [f"{name}: asks {host}, perhaps" for host in hosts]
    return []


def main():
    site = Path(sys.argv[1])
    files = [path for path in sorted(site.rglob("*")) if path.is_file()]
    if not any(path.suffix == ".html" for path in files):
        sys.exit(f"there is no page in {site}")
    problems = [problem for path in files for problem in complaints(path, path.relative_to(site).as_posix())]
    for problem in problems:
        print(f"another host: {problem}", file=sys.stderr)
    sys.exit(1 if problems else 0)


main()
