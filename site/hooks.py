"""Hooks of MkDocs: what the repository has for readers on GitHub, as pages of a site.

The documents stay as they are. The navigation is read from the table in `docs/README.md`, so that there is one
list of documents and not two; links to folders lead to their README, and links to examples to pages that show
them.
"""

import posixpath
import re
from pathlib import Path

from mkdocs.structure.files import File

DOCUMENTS = "docs/README.md"
EXAMPLES = "examples/README.md"
GALLERY = "gallery/README.md"
# Made by the program, in some versions of it.
COMING_FROM = "docs/reference/coming-from.md"
# Examples by their ending, and the languages of what they are.
SHOWN = {".yaml": "yaml", ".yml": "yaml", ".lua": "lua"}

ITEM = re.compile(r"(?:[-*+]|\d+[.)]) +")
LINK = re.compile(r"\[([^\]]*)\]\(([^)\s]+)\)")
CODE_SPAN = re.compile(r"(`+)(?:(?!\1).)+\1")


def on_config(config):
    config.nav = navigation(Path(config.docs_dir))
    return config


def navigation(pages):
    """The rows of the table of documents, before and after them what is not in `docs/`."""
    nav = [{"Home": ["README.md", {"All documents": DOCUMENTS}]}]
    for row in (pages / DOCUMENTS).read_text().splitlines():
        cells = re.match(r"\| \*\*(.+?)\*\* \| (.+) \|$", row)
        if cells:
            nav.append({cells[1]: entries(cells[2])})
    if len(nav) < 5:
        raise SystemExit(f"{DOCUMENTS} has no table of documents any more: {nav}")
    listed = set(re.findall(r"'(docs/[^']+)'", repr(nav)))
    if (pages / COMING_FROM).exists() and COMING_FROM not in listed:
        section = next((entries for row in nav for name, entries in row.items() if name == "Reference"), None)
        if section is None:
            raise SystemExit(f"{DOCUMENTS} has no row of references for {COMING_FROM}")
        section.append({"Coming from another generator": COMING_FROM})
    if (pages / GALLERY).exists():
        nav.append({"Gallery": [GALLERY]})
    nav.append({"Examples": [EXAMPLES, *({title: path} for path, title in example_pages(pages))]})
    nav.append({"Project": project(pages)})
    return nav


def entries(cell):
    """The links of a cell; those behind `*Name*:` are a group of that name."""
    first, *groups = re.split(r"\*([^*]+)\*: ", cell)
    found = [entry(*link.groups()) for link in LINK.finditer(first)]
    for name, links in zip(groups[::2], groups[1::2]):
        found.append({name: [entry(*link.groups()) for link in LINK.finditer(links)]})
    return found


def entry(title, link):
    """A link of the table as an entry: a title, which is plain text in a menu, and a page."""
    path = posixpath.normpath(posixpath.join("docs", link))
    return {title.replace("`", ""): EXAMPLES if path == "examples" else path}


def project(pages):
    """Documents about the project itself, which are outside of `docs/`."""
    known = {"README.md"}
    found = [path.relative_to(pages).as_posix() for path in sorted(pages.rglob("*.md"))]
    folders = ("docs/", "examples/", "gallery/")
    return [path for path in found if path not in known and not path.startswith(folders)]


def example_files(pages):
    """Examples that are shown on a page of their own."""
    return sorted(path for path in (pages / "examples").rglob("*") if path.suffix in SHOWN)


def example_pages(pages):
    """The pages of examples: documents that are there, and those made for files."""
    there = [path for path in (pages / "examples").rglob("*.md")]
    paths = {path.relative_to(pages).as_posix(): None for path in there}
    for path in example_files(pages):
        paths[page_of(path.relative_to(pages).as_posix())] = None
    paths.pop(EXAMPLES, None)
    return [(path, title_of(path)) for path in sorted(paths, key=lambda path: (path.count("/"), path))]


def is_example(path):
    return path.startswith("examples/") and posixpath.splitext(path)[1] in SHOWN


def page_of(example):
    """The page that shows a file; not `x.yaml.md`, whose folder on the site would be where the file is."""
    return posixpath.splitext(example)[0] + ".md"


def title_of(path):
    return posixpath.splitext(path.removeprefix("examples/"))[0].removesuffix("/README")


def on_files(files, config):
    """Adds a page for every example, and one that lists them."""
    pages = Path(config.docs_dir)
    rows = []
    for path in example_files(pages):
        name = path.relative_to(pages).as_posix()
        text = path.read_text()
        page = f"# {title_of(name)}\n\n```{SHOWN[path.suffix]}\n{text.rstrip()}\n```\n\n[The file]({path.name})\n"
        files.append(File.generated(config, page_of(name), content=page))
        said = re.match(r"(?:#|--) ?(.+)", text)
        title = title_of(name)
        rows.append(f"| [`{title}`]({title}.md) | {said[1] if said else ''} |")
    if files.get_file_from_path(EXAMPLES) is None:
        listing = "# Examples\n\nEach is run by a test.\n\n| | |\n|---|---|\n" + "\n".join(rows) + "\n"
        files.append(File.generated(config, EXAMPLES, content=listing))
    return files


def on_page_markdown(markdown, page, config, files):
    return indented(with_links(markdown, page.file.src_uri, files))


def with_links(markdown, source, files):
    """Leads links to where they go on the site, outside of code."""

    def target(link):
        if re.match(r"[a-z]+:|#|/", link):
            return link
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), link))
        if files.get_file_from_path(f"{path}/README.md"):
            return f"{link.rstrip('/')}/README.md"
        # The page of an example shows it, and links to the file itself.
        if is_example(path) and source != page_of(path):
            return page_of(link)
        return link

    def line_with_links(line):
        code = [found.span() for found in CODE_SPAN.finditer(line)]

        def replace(found):
            if any(start <= found.start() < end for start, end in code):
                return found[0]
            return f"[{found[1]}]({target(found[2])})"

        linked = LINK.sub(replace, line)
        # GitHub wants bars in the code of a table escaped, Python-Markdown does not.
        return CODE_SPAN.sub(lambda found: found[0].replace(r"\|", "|"), linked) if line[:1] == "|" else linked

    lines, in_code = [], False
    for line in markdown.splitlines():
        fence = line.lstrip().startswith("```")
        in_code ^= fence
        lines.append(line if in_code or fence else line_with_links(line))
    return "\n".join(lines)


def indented(markdown):
    """Indents what belongs to items of lists by four, as Python-Markdown wants it.

    CommonMark, which the documents are written in, takes the column of the item's text, and lets a list begin
    without an empty line.
    """
    lines, columns = [], []
    in_code, after_empty, loose = False, False, False
    for line in markdown.splitlines():
        text = line.lstrip(" ")
        column = len(line) - len(text)
        if not text:
            lines.append(line)
            after_empty = loose = True
            continue
        item = None if in_code else ITEM.match(text)
        was_in = len(columns)
        # A number at the beginning of a line of a paragraph is one of a list only if it is the first.
        if item and not was_in and not after_empty and lines and text[0].isdigit() and not text.startswith("1"):
            item = None
        # A line that is not indented goes on with the paragraph of the item before it.
        if item or (after_empty and not in_code):
            while columns and column < columns[-1]:
                columns.pop()
        kept = line[min(column, columns[-1]) if columns else 0 :]
        if item:
            if not after_empty and (loose or was_in == 0) and lines:
                lines.append("")
            loose = False
        lines.append(" " * 4 * len(columns) + kept)
        if item:
            columns.append(column + item.end())
        in_code ^= text.startswith("```")
        after_empty = False
    return "\n".join(lines)
