"""`graphlane completion` prints shell completions from the options that the commands declare."""

import re
import subprocess

import pytest


@pytest.fixture(scope="module")
def complete(graphlane):
    """complete("graphlane", "cr"): bash's offers for the last word."""
    script = graphlane("completion", "bash").stdout

    def offers(*words):
        driver = f"{script}\nCOMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); _graphlane; echo \"${{COMPREPLY[@]}}\""
        return subprocess.run(["bash", "-c", driver, "-", *words], capture_output=True, text=True,
                              check=True).stdout.split()

    return offers


@pytest.mark.parametrize("words, offered", [
    (["cr"], {"create"}), (["algo", "pager"], {"pagerank", "pagerank-delta"}),
    (["convert", "--cod"], {"--codec"}), (["convert", "--codec", ""], {"raw", "varint", "simd", "reference"}),
    (["-q", "gen", ""], {"rmat"}), (["mount", "/some/fi"], set())])
def test_bash_offers_commands_options_and_their_words(complete, words, offered):
    assert set(complete("graphlane", *words)) == offered


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_know_every_command_and_option(graphlane, shell):
    script = graphlane("completion", shell).stdout
    for command in ["create", "import", "convert", "algo", "run", "mount", "completion"]:
        assert command in script
        for line in graphlane(command, "--help").stdout.splitlines():
            for word in re.findall(r"--[a-z][a-z-]+", line.split("  ")[1] if line.startswith("  -") else ""):
                assert (f"-l {word[2:]}" if shell == "fish" else word) in script, (command, word)


def test_another_shell_is_a_usage_error(graphlane):
    assert graphlane("completion", "csh", check=False).returncode == 2
