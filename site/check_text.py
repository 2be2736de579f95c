"""Fails if a page of the site says something else than its document does on GitHub.

The site is made by Python-Markdown, and the documents are written in CommonMark with tables. hooks.py evens out where
the two are known to differ; this finds the rest: words that are lost or changed, and lists, tables, blocks of code and
emphasis that are there in one and not in the other.
"""

import re
import sys
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

from markdown_it import MarkdownIt

STRUCTURE = {"li", "ol", "ul", "td", "th", "pre", "h1", "h2", "h3", "h4", "h5", "strong", "em", "blockquote", "img",
             "hr"}


class Page(HTMLParser):
    """The text of a page without spaces, and how often each element is in it."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.words = Counter(), []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        if tag in STRUCTURE:
            self.elements[tag] += 1

    def handle_data(self, data):
        self.words.append(data)

    def text(self):
        # The sign of a link to a heading is the theme's.
        return "".join("".join(self.words).split()).replace("¶", "")


def difference(document, page):
    """What differs first, or nothing."""
    wanted = Page(MarkdownIt("commonmark").enable("table").render(document))
    article = re.search(r"<article[^>]*>(.*?)</article>", page, re.DOTALL)
    if not article:
        return "there is no article"
    found = Page(article[1])
    one, other = wanted.text(), found.text()
    if one != other:
        at = next((at for at, (a, b) in enumerate(zip(one, other)) if a != b), min(len(one), len(other)))
        return f"it says `{other[max(0, at - 30):at + 30]}` for `{one[max(0, at - 30):at + 30]}`"
    for element in sorted(STRUCTURE):
        if wanted.elements[element] != found.elements[element]:
            return f"it has {found.elements[element]} of <{element}> for {wanted.elements[element]}"
    return None


def main():
    pages, site = Path(sys.argv[1]), Path(sys.argv[2])
    documents = [path for path in sorted(pages.rglob("*.md")) if "gallery" not in path.parts]
    if len(documents) < 30:
        sys.exit(f"there are only {len(documents)} documents in {pages}")
    wrong = 0
    for document in documents:
        name = document.relative_to(pages)
        page = site / name.parent / ("index.html" if name.stem == "README" else f"{name.stem}/index.html")
        problem = difference(document.read_text(), page.read_text())
        if problem:
            print(f"{name}: {problem}", file=sys.stderr)
            wrong += 1
    sys.exit(1 if wrong else 0)


main()
