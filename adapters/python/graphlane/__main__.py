"""python -m graphlane: the package's own commands; every other word goes to the `graphlane` command."""

import argparse
import sys

from graphlane import __version__, _command, _core
from graphlane._open import open_graph

USAGE = """\
usage: python -m graphlane COMMAND …

  show GRAPH                     what a stored graph is, whatever its format
  program                        the path of the command in this package

Every other command goes to `graphlane`: convert, algo, create, import, mount and the rest;
`python -m graphlane commands` lists them."""


def show(words: list[str]) -> None:
    parser = argparse.ArgumentParser("python -m graphlane show", description="What a stored graph is.")
    parser.add_argument("graph")
    print(repr(open_graph(parser.parse_args(words).graph)))


def main() -> int:
    word = sys.argv[1] if len(sys.argv) > 1 else "--help"
    if word in ("-h", "--help"):
        print(USAGE)
    elif word == "--version":
        print(__version__)
    elif word == "program":
        print(_command.PROGRAM)
    elif word == "show":
        show(sys.argv[2:])
    else:
        if word == "commands":
            sys.argv[1:] = ["--help"]
        _command.main()
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (_core.Error, OSError) as error:
        sys.exit(f"graphlane: {error}")
