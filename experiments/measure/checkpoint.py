"""The samples of a command that has not ended. After an interruption, --resume continues from them.

Each line is JSON. The first has the options of the command, the others a sample and its commit.
"""

import json
from collections.abc import Callable
from copy import copy
from itertools import count
from pathlib import Path

import click

from experiments.measure import samples
from experiments.workspace import StepFailed

RESUME = click.option("--resume", is_flag=True,
                      help="Continue an interrupted run with the same options, and keep its samples.")
OUTPUT_OPTIONS = ("resume", "as_json", "out")


def measured_options(context: click.Context) -> dict:
    """The command's options that say what is measured."""
    return {name: value for name, value in context.params.items() if name not in OUTPUT_OPTIONS}


class Checkpoint:
    """Without a path nothing is kept."""

    def __init__(self, path: Path | None = None, options: dict | None = None, resume: bool = False):
        self.path = path
        self.of = []  # what samples are of beside their labels: part()
        self.found = {}  # key() -> sample
        self.asked = set()  # keys of samples that were asked for
        self.commits = []
        self.commit = samples.commit()
        if path is None:
            return
        older = path.with_suffix(".unfinished")
        if resume and older.exists() and not path.exists():
            raise StepFailed(f"{older}: of an older version, and cannot be resumed: start again without --resume")
        begun = {name: str(value) for name, value in (options or {}).items()}
        try:
            if resume and path.exists():
                self.load(begun)
            else:
                if path.exists():  # perhaps hours of samples, and --resume was forgotten
                    path.replace(path.with_name(path.name + "~"))
                path.write_text(json.dumps({"options": begun}) + "\n")
        except OSError as error:
            raise StepFailed(f"{path}: {error.strerror}") from None

    def load(self, options: dict) -> None:
        first, *lines = self.path.read_text().split("\n")
        before = parse_line(first).get("options")
        if before != options:
            differ = sorted(name for name in options.keys() | (before or {}).keys()
                            if options.get(name) != (before or {}).get(name))
            raise StepFailed(f"{self.path}: begun by other options ({', '.join(differ)}): give "
                             "those, or leave --resume away")
        # A kill may have left half of the last line.
        kept = [line for line in lines if parse_line(line).keys() >= {"of", "commit", "sample"}]
        mended = self.path.with_name(self.path.name + ".new")
        mended.write_text("".join(line + "\n" for line in [first, *kept]))
        mended.replace(self.path)
        for line in map(parse_line, kept):
            self.found[line["of"]] = line["sample"]
            self.note(line["commit"])

    def note(self, commit: str) -> None:
        if commit not in self.commits:
            self.commits.append(commit)

    def part(self, name: str | dict) -> "Checkpoint":
        """For one of several measurements: its samples are separate, whatever they are of."""
        part = copy(self)
        part.of = [*self.of, name]
        return part

    def key(self, labels: dict) -> str:
        """The next key for these labels. The same question asked again, as for the ceiling, needs another
        sample."""
        keys = (json.dumps([self.of, labels, number], sort_keys=True) for number in count())
        return next(key for key in keys if key not in self.asked)

    def has(self, labels: dict) -> bool:
        return self.key(labels) in self.found

    def sample(self, labels: dict, measure: Callable[[], dict]) -> dict:
        """The kept sample for these labels; else measures it, and keeps it."""
        key = self.key(labels)
        self.asked.add(key)
        if key not in self.found:
            self.found[key] = measure()
            self.note(self.commit)
            if self.path:
                line = {"of": key, "commit": self.commit, "sample": self.found[key]}
                with self.path.open("a") as file:
                    file.write(json.dumps(line) + "\n")
        return self.found[key]

    def all_commits(self) -> str:
        """Those that samples are of."""
        return ", ".join(self.commits or [self.commit])

    def done(self) -> None:
        """All of it is written elsewhere."""
        if self.path:
            self.path.unlink(missing_ok=True)


def parse_line(line: str) -> dict:
    """Nothing, if it is no whole line."""
    try:
        found = json.loads(line)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
