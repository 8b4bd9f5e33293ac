"""The manual has a page for each command, with each option that the command takes."""

import re
import subprocess

import pytest

from harness import BUILD, ROOT, run

PAGES = ROOT / "cli/man"
OVERVIEW = (PAGES / "graphlane.1").read_text()


def listed_commands() -> list[str]:
    text = run(BUILD / "bin/graphlane", "--help").stdout
    return re.findall(r"^  ([a-z-]+) {2,}\S", text.split("Subcommands:")[1], re.MULTILINE)


def page_of(command: str) -> str:
    return (PAGES / f"graphlane-{command}.1").read_text()


def options_in_help(command: str) -> set[str]:
    words = [command, "rmat"] if command == "gen" else [command]
    text = run(BUILD / "bin/graphlane", *words, "--help").stdout
    names = re.findall(r"^  (-\S+)", text.split("Options:")[1], re.MULTILINE)
    return {re.sub(r"[\[{=].*", "", name) for group in names for name in group.split(",")} - {"-h", "--help"}


def options_in_page(text: str) -> set[str]:
    """The names after .It Fl. "Fl -name" stands for --name; a comma or bar separates names."""
    items = re.findall(r"^\.It Fl (.*)$", text, re.MULTILINE)
    return {f"-{word}" for item in items for word in re.split(r" (?:Ar|Ns|Cm)\b", item)[0].replace("|", ",").split()
            if word != ","}


def test_each_command_has_a_page_that_the_overview_names():
    commands = listed_commands()
    assert len(commands) > 20
    assert {f"graphlane-{command}.1" for command in commands} == \
        {page.name for page in PAGES.iterdir()} - {"graphlane.1"}
    for command in commands:
        assert f".It Xr graphlane-{command} 1\n" in OVERVIEW, command


@pytest.mark.parametrize("command", listed_commands())
def test_a_page_lists_the_options_of_its_command(command):
    assert options_in_page(page_of(command)) == options_in_help(command)


@pytest.mark.parametrize("command", listed_commands())
def test_the_example_of_a_page_uses_options_that_exist(command):
    example = page_of(command).split(".Sh EXAMPLES\n")[1].split(".Sh ")[0].replace("\\e\n", "")
    own = [line for line in example.splitlines() if re.match(rf"(\.Dl )?graphlane {command} ", line)]
    assert own
    for line in own:
        words = line.split(" -- ")[0].split()
        assert {word for word in words if word.startswith("-") and word != "-"} <= options_in_help(command), line


def test_a_page_refers_only_to_pages_that_exist():
    for page in PAGES.iterdir():
        for name in re.findall(r"^\.(?:It )?Xr (graphlane\S*) 1", page.read_text(), re.MULTILINE):
            assert (PAGES / f"{name}.1").exists(), f"{page.name}: {name}"


def test_the_page_of_run_describes_each_variable_of_the_preload_library():
    variables = re.findall(r'getenv\("(GRAPHLANE_\w+)"\)', (ROOT / "shim/base/settings.cc").read_text())
    assert len(variables) > 5
    for variable in variables:
        assert f"Ev {variable}" in page_of("run"), variable


def test_mandoc_finds_no_fault():
    said = subprocess.run(["mandoc", "-Tlint", *PAGES.iterdir()], check=False, capture_output=True, text=True).stdout
    # Pages of other packages may not be installed.
    assert [line for line in said.splitlines() if "referenced manual not found" not in line] == []
