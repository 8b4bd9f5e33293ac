"""Measure Graphlane: on emulated devices, against the OS striped volume and the
devices' own ceiling."""

import ast
import errno
from importlib import import_module
from pathlib import Path

import click

from experiments import MODULES
from experiments.devices import emulated
from experiments.measure.options import device_options, spec_of
from experiments.workspace import StepFailed, stop_on_signals

INTERRUPTED = 130
# Columns of a command's line in --help.
LINE_MAX = 90


def summary_of(module: str) -> str:
    """The line of a command in --help, read from its source: importing those that draw takes seconds."""
    text = Path(__file__).parent.joinpath(*module.split(".")).with_suffix(".py").read_text()
    return click.Command(module, help=ast.get_docstring(ast.parse(text))).get_short_help_str(LINE_MAX)


class Experiments(click.Group):
    """Loads a command's module when it is wanted; an error is one line on stderr."""

    def list_commands(self, ctx):
        return sorted([*super().list_commands(ctx), *MODULES])

    def get_command(self, ctx, name):
        if name in MODULES:
            return import_module(f"experiments.{MODULES[name]}").main
        return super().get_command(ctx, name)

    def format_commands(self, ctx, formatter):
        own = {name: command.get_short_help_str(LINE_MAX) for name, command in self.commands.items()}
        lines = own | {name: summary_of(module) for name, module in MODULES.items()}
        with formatter.section("Commands"):
            formatter.write_dl(sorted(lines.items()))

    def invoke(self, ctx):
        stop_on_signals()
        try:
            return super().invoke(ctx)
        except StepFailed as failed:
            raise click.ClickException(str(failed)) from None
        except OSError as error:  # click itself knows what a closed pipe is
            if error.errno == errno.EPIPE or error.filename is None:
                raise
            raise click.ClickException(f"{error.filename}: {error.strerror}") from None
        except KeyboardInterrupt:
            click.echo("Interrupted; what was set up for this run is gone.", err=True)
            ctx.exit(INTERRUPTED)


@click.group(cls=Experiments, help=__doc__)
def cli():
    pass


@cli.group()
def devices():
    """Sets up emulated block devices, and takes them down."""


AT = click.option("--at", required=True, type=click.Path(file_okay=False, path_type=Path),
                  help="The directory that holds everything of these devices.")


@devices.command()
@device_options
@AT
def up(at, **options):
    """Make devices, and leave them for `limits` and `compare --at DIR`."""
    with emulated.open_journal(at.resolve(), create=True) as journal:
        for device in emulated.up(journal, spec_of(options)):
            click.echo(f"{device.node}  {device.directory}")


@devices.command()
@AT
def down(at):
    """Undo all that was done at DIR, also after a crash; run it again if
    something was in use."""
    with emulated.open_journal(at.resolve()) as journal:
        emulated.take_down(journal)


if __name__ == "__main__":
    cli(prog_name="python -m experiments")
