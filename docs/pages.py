#!/usr/bin/env python3
"""pages.py OUT: writes the pages of docs/ into OUT, whole. `make docs` has mkdocs build a site of them.

A page of docs/ is Markdown with three more words, each alone on its line:

    {{ include FILE "Heading" }}   a section of a Markdown file, without its heading
    {{ include FILE }}             all of it, without its title
    {{ file FILE }}                a file as it is, for a block of code

The reference is made of the manual (mandoc), the format pages of the FORMAT.md's, and the architecture
of ARCHITECTURE.md. So nothing is written twice. A word or a link that leads nowhere is an error.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
MANUAL = ROOT / "cli/man"
# Pages that are made of a file of the repository: where they stand, and what of.
MADE_OF = {
    "internals/architecture.md": "ARCHITECTURE.md",
    "internals/volume-format.md": "iomgr/volume/FORMAT.md",
    "internals/graph-formats.md": "graphfmt/FORMAT.md",
    "internals/conformance.md": "fuse/CONFORMANCE.md",
    "internals/results.md": "experiments/RESULTS.md",
    "internals/log.md": "experiments/LOG.md",
    "security.md": "SECURITY.md",
    "changes.md": "CHANGELOG.md",
}
WORD = re.compile(r'^\{\{ (include|file) (\S+?)(?: "(.*?)")? \}\}$', re.MULTILINE)
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")


def section(text: str, heading: str) -> str:
    """The text below a heading, up to the next one of its level or a higher one."""
    found = re.search(rf"^(#+) {re.escape(heading)}\n", text, re.MULTILINE)
    if not found:
        raise ValueError(f"no heading {heading!r}")
    rest = text[found.end():]
    end = re.search(rf"^#{{1,{len(found.group(1))}}} ", rest, re.MULTILINE)
    return rest[:end.start()] if end else rest


def without_title(text: str) -> str:
    return re.sub(r"\A# .*\n", "", text)


def relink(text: str, source: Path, page: str) -> str:
    """Links of a file of the repository, for a page made of it: to another page, or else to no place, as
    only the repository has it."""
    places = {ROOT / made_of: name for name, made_of in MADE_OF.items()}

    def link(found: re.Match) -> str:
        mark, name, target = found.groups()
        path, _, anchor = target.partition("#")
        if "://" in target or not path:
            return found.group(0)
        place = (source.parent / path).resolve()
        if place.is_relative_to(DOCS) and place.is_file():
            to = str(place.relative_to(DOCS))
        elif place in places:
            to = places[place]
        elif place.exists():
            return name if name.startswith("`") else f"`{place.relative_to(ROOT)}`"
        else:
            raise ValueError(f"{source.relative_to(ROOT)}: the link {target} leads nowhere")
        return f"{mark}[{name}]({'../' * page.count('/')}{to}{'#' + anchor if anchor else ''})"

    return LINK.sub(link, text)


def expanded(text: str, page: str) -> str:
    """A page of docs/ with its words replaced."""
    def word(found: re.Match) -> str:
        kind, name, heading = found.groups()
        source = ROOT / name
        if kind == "file":
            return source.read_text().rstrip("\n")
        whole = source.read_text()
        return relink(section(whole, heading) if heading else without_title(whole), source, page).strip("\n")

    return WORD.sub(word, text)


def manual_page(source: Path) -> str:
    """A manual page as Markdown around HTML, with links to the others."""
    html = subprocess.run(["mandoc", "-Thtml", "-Ofragment", source], check=True, capture_output=True, text=True).stdout
    html = re.sub(r"<(table|div) class=\"(head|foot)\".*?</\1>\n?", "", html, flags=re.DOTALL)
    html = re.sub(r'<a class="Xr">(graphlane[a-z-]*)\(1\)</a>', r'<a class="Xr" href="../\1/">\1(1)</a>', html)
    what = re.search(r"^\.Nd (.*)", source.read_text(), re.MULTILINE).group(1)
    return f"---\ntitle: {source.stem}\ndescription: {what}\n---\n\n# {source.stem}(1)\n\n<div class=\"manual\">\n{html}</div>\n"


def check_links(out: Path) -> None:
    for page in out.rglob("*.md"):
        for _, _, target in LINK.findall(re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(), flags=re.DOTALL)):
            path = target.partition("#")[0]
            if path and "://" not in target and not (page.parent / path).exists():
                raise ValueError(f"docs/{page.relative_to(out)}: the link {target} leads nowhere")


def write_site(out: Path) -> None:
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    for source in sorted(DOCS.rglob("*")):
        page = source.relative_to(DOCS)
        if source.is_dir() or "__pycache__" in page.parts:
            continue
        (out / page).parent.mkdir(parents=True, exist_ok=True)
        if source.suffix == ".md":
            (out / page).write_text(expanded(source.read_text(), str(page)))
        elif source.suffix in (".svg", ".css"):
            shutil.copy(source, out / page)
    for page, made_of in MADE_OF.items():
        (out / page).write_text(relink((ROOT / made_of).read_text(), ROOT / made_of, page))
    (out / "reference").mkdir(exist_ok=True)
    for source in sorted(MANUAL.glob("*.1")):
        (out / "reference" / f"{source.stem}.md").write_text(manual_page(source))
    check_links(out)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    try:
        write_site(Path(sys.argv[1]))
    except (OSError, ValueError, subprocess.CalledProcessError) as error:
        sys.exit(f"docs: {error}")
