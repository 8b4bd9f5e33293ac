"""Documents say what is there: paths, links, rooms, messages, and commands that run as pasted."""

import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from harness import BUILD, ROOT, run

README_LINES_MAX = 120
SOURCES = (".h", ".hpp", ".c", ".cc", ".def", ".py")
# A folder may include these besides its own files.
BELOW = {
    "iomgr": [],
    "graphfmt": ["iomgr"],
    "shim": ["iomgr"],
    "fuse": ["iomgr"],
    "adapters": ["iomgr", "graphfmt"],
}
ROOMS = ["base", "volume", "io", "cache", "read", "server", "admin"]  # of iomgr; each includes only those before it


def project_files() -> list[str]:
    """Without Git, as in an archive, all that lies outside of build/."""
    listed = subprocess.run(["git", "ls-files"], check=False, cwd=ROOT, capture_output=True, text=True)
    if listed.returncode == 0 and listed.stdout:
        return [name for name in listed.stdout.splitlines() if (ROOT / name).exists()]
    return [str(path.relative_to(ROOT)) for path in ROOT.rglob("*")
            if path.is_file() and not path.is_relative_to(ROOT / "build")]


FILES = project_files()
NAMES = {Path(name).name for name in FILES}
FOLDERS = {name.split("/")[0] for name in FILES if "/" in name}
# A log tells of files as they were.
DOCUMENTS = [name for name in FILES if name.endswith(".md") and Path(name).name not in ("LOG.md", "CHANGELOG.md")]


@cache
def words_of_code() -> set[str]:
    return {word for name in FILES if name.endswith(SOURCES)
            for word in re.findall(r"\b[A-Z]\w+", (ROOT / name).read_text(errors="replace"))}


def included(folder: str) -> dict[str, set[str]]:
    """The includes from the project, of each source of a folder."""
    sources = [name for name in FILES if name.startswith(f"{folder}/") and name.endswith((".h", ".cc"))]
    return {name: set(re.findall(r'^#include "([^"]+/[^"]+)"', (ROOT / name).read_text(), re.MULTILINE)) for name in sources}


def test_the_pages_are_made_and_their_links_lead_somewhere(tmp_path):
    run(sys.executable, ROOT / "docs/pages.py", tmp_path / "pages")
    listed = re.findall(r"([\w/-]+\.md)", (ROOT / "docs/mkdocs.yml").read_text())
    made = {str(page.relative_to(tmp_path / "pages")) for page in (tmp_path / "pages").rglob("*.md")}
    assert sorted(listed) == sorted(made)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_a_document_names_files_that_exist(document):
    text = re.sub(r"```.*?```", "", (ROOT / document).read_text(), flags=re.DOTALL)
    near = (ROOT / document).parent
    for name in re.findall(r"`([\w./-]+\.(?:h|hpp|c|cc|def|py|md|mk))`", text):
        if "/" not in name:
            assert name in NAMES, name
        elif name.split("/")[0] in FOLDERS or (near / name.split("/")[0]).is_dir():
            assert (ROOT / name).exists() or (near / name).exists(), name
    for name in re.findall(r"`([A-Z][a-z]+(?:[A-Z][a-z]+)+)`", text):
        assert name in words_of_code(), name
    if document.startswith("docs/"):
        return  # their links are those of the site
    for name in re.findall(r"\]\(([^)#\s]+)", text):
        assert "://" in name or (near / name).exists(), name


@pytest.mark.parametrize("document", [name for name in DOCUMENTS if Path(name).name == "README.md"])
def test_a_readme_is_short(document):
    assert len((ROOT / document).read_text().splitlines()) <= README_LINES_MAX


@pytest.mark.parametrize("folder", BELOW)
def test_a_folder_includes_only_what_stands_below_it(folder):
    for source, names in included(folder).items():
        assert {name.split("/")[0] for name in names} <= {folder, *BELOW[folder]}, source


def test_a_room_of_iomgr_includes_only_rooms_before_it():
    for number, room in enumerate(ROOMS):
        for source, names in included(f"iomgr/{room}").items():
            rooms = {name.split("/")[1] for name in names}
            assert rooms <= set(ROOMS[:number + 1]), source


def test_the_version_is_the_same_everywhere():
    version = re.search(r"^VERSION := (\S+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)[1]
    assert re.search(r"^## (\S+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)[1] == version
    assert f'\nversion = "{version}"\n' in (ROOT / "adapters/python/pyproject.toml").read_text()
    assert run(BUILD / "bin/graphlane", "--version").stdout == f"graphlane {version}\n"


def test_troubleshooting_quotes_messages_that_exist():
    code = "".join(re.sub(r'"\s*\n\s*"', "", (ROOT / name).read_text()) for name in FILES
                   if name.startswith(("cli/", "fuse/", "iomgr/", "shim/")) and name.endswith((".h", ".cc", ".def")))
    quoted = re.findall(r"^\| `(.*?)` \|", (ROOT / "docs/troubleshooting.md").read_text(), re.MULTILINE)
    assert len(quoted) > 10
    for message in quoted:
        assert message.replace("…", "{}") in code, message


def run_pasted(script: str, directory: Path) -> str:
    path = f"{BUILD}/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    return run("bash", "-euxc", script, cwd=directory, env={"PATH": path, "HOME": str(directory)}).stdout


def test_the_page_on_algorithms_runs_as_pasted(tmp_path):
    blocks = re.findall(r"```sh\n(.*?)```", (ROOT / "docs/howto/algorithms.md").read_text(), re.DOTALL)
    run_pasted("mkdir graphs; graphlane gen rmat --scale 10 edges.bin\n" + "\n".join(blocks), tmp_path)
    assert (tmp_path / "ranks.npy").exists() and (tmp_path / "levels.csv").exists()


def test_the_quick_start_runs_as_pasted(fuse, tmp_path):
    """But for what installs, and what needs the installed package."""
    section = (ROOT / "README.md").read_text().split("## Quick start\n")[1].split("\n## ")[0]
    lines = [line[4:] for line in section.splitlines() if line.startswith("    ")]
    pasted = [line for line in lines if not line.startswith(("make ", "python3 "))]
    assert len(pasted) > 10
    script = "\n".join(pasted).replace("/../lib/graphlane/", "/../engines/").replace("--scale 18", "--scale 14")
    said = run_pasted(script, tmp_path)
    assert said.count("pagerank: 5 iterations") == 2, said
    assert (tmp_path / "ranks.npy").exists()
