"""Measures whether Graphlane reaches its goals on this machine.

It measures on emulated disks and SSDs and in memory. For each goal it prints name, value with the
range of the rounds, target, and ok or short; then, for each short goal, where the time goes. Exit status
0: all are ok. 1: one is short, or none that --only names could be measured, for example without an engine.
"""

import json
from contextlib import nullcontext
from dataclasses import replace
from fnmatch import fnmatch

import click

from experiments.devices import emulated
from experiments.devices.emulated import Devices, Spec
from experiments.goals.goals import GOALS, MEASUREMENTS, Goal
from experiments.measure import samples, summary
from experiments.measure.checkpoint import RESUME, Checkpoint, measured_options
from experiments.measure.options import OUT_FILE
from experiments.measure.plan import Plan, effort_options, plan_of
from experiments.measure.sizes import SIZE
from experiments.measure.tables import Table
from experiments.workspace import StepFailed

COUNT = 8
COUNT_QUICK = 4


def chosen(globs: tuple[str, ...]) -> list[Goal]:
    for glob in globs:
        if not any(fnmatch(goal.name, glob) for goal in GOALS):
            raise StepFailed(f"--only {glob}: no goal has this name; there are "
                             f"{', '.join(goal.name for goal in GOALS)}")
    return [goal for goal in GOALS
            if not globs or any(fnmatch(goal.name, glob) for glob in globs)]


def measure_one(name: str, made: Devices | None, plan: Plan, how: dict) -> dict:
    """Measures and returns the result to be kept. A failure is a result too, and the others go on."""
    kept = {"measurement": name, "samples": []} | (made.describe() if made else {})
    how = {**how, "checkpoint": how["checkpoint"].part(name)}
    try:
        kept["samples"] = MEASUREMENTS[name].measure(
            made, plan.on(made.spec.kind) if made else plan, how)
    except StepFailed as failed:
        click.echo(f"{name}: {failed}", err=True)
        kept["failed"] = str(failed)
    return kept


def measure(wanted: list[str], spec: Spec, plan: Plan, how: dict) -> dict[str, dict]:
    """Devices are made once a kind."""
    measured = {}
    for kind in dict.fromkeys(MEASUREMENTS[name].kind for name in wanted):
        with emulated.fresh(replace(spec, kind=kind)) if kind else nullcontext() as made:
            for name in wanted:
                if MEASUREMENTS[name].kind == kind:
                    measured[name] = measure_one(name, made, plan, how)
    return measured


def judge(goal: Goal, measured: dict) -> dict | None:
    """One line; None if this run had nothing to measure it with."""
    verdict = {"name": goal.name, "says": goal.says, "limit": goal.limit,
               "at_most": goal.at_most}
    if "failed" in measured:
        return {**verdict, "failed": measured["failed"], "ok": False}
    value = goal.value(measured["samples"])
    if not value:
        return None
    verdict |= value | {"ok": goal.ok(value)}
    if not verdict["ok"]:
        verdict["why"] = goal.why(measured["samples"], value)
    return verdict


def table(verdicts: list[dict]) -> Table:
    shown = Table(["goal", "what", "value", "target", ""], texts=2, caption=summary.CAPTION)
    for verdict in verdicts:
        shown.add(verdict["name"], verdict["says"],
                  "failed" if "failed" in verdict else samples.format_ratio(verdict),
                  f"{'≤' if verdict['at_most'] else '≥'} {verdict['limit']:g}",
                  "ok" if verdict["ok"] else "short")
    return shown


def reasons(verdicts: list[dict]) -> dict[str, str]:
    """The bottlenecks of the short goals, by name, where the measurement shows them."""
    return {verdict["name"]: verdict["why"] for verdict in verdicts if "why" in verdict}


@click.command(help=__doc__)
@effort_options
@click.option("--count", type=click.IntRange(2, 64),
              help=f"The largest number of devices. [{COUNT}; quick: {COUNT_QUICK}]")
@click.option("--size", type=SIZE, default="3G", show_default=True, help="Size of each device.")
@click.option("--dilate", "dilation", type=click.FloatRange(0, min_open=True), default=8,
              show_default=True, help="How many times slower the devices are than real ones.")
@click.option("--only", multiple=True, metavar="GLOB",
              help="Only goals with matching names; may be given several times.")
@click.option("--json", "as_json", is_flag=True, help="Print the verdicts as JSON.")
@click.option("--out", type=OUT_FILE, help="Keep the samples as JSON, for `report`.")
@RESUME
@click.pass_context
def main(ctx, count, size, dilation, only, as_json, out, resume, **options):
    if resume and not out:
        raise click.UsageError("--resume: what was measured is kept beside --out: give it, too")
    wanted = chosen(only)
    checkpoint = Checkpoint(out and out.with_suffix(".checkpoint"), measured_options(ctx), resume)
    count = count or (COUNT_QUICK if options["quick"] else COUNT)
    plan, how = plan_of(options, count)
    names = dict.fromkeys(goal.measurement for goal in wanted)
    spec = Spec(count=count, size=size, dilation=dilation)
    measured = measure(list(names), spec, plan, {**how, "checkpoint": checkpoint})
    verdicts = [judge(goal, measured[goal.measurement]) for goal in wanted]
    verdicts = [verdict for verdict in verdicts if verdict]
    unmeasured = [glob for glob in only
                  if not any(fnmatch(verdict["name"], glob) for verdict in verdicts)]
    for glob in unmeasured:
        click.echo(f"--only {glob}: nothing here to measure it with (--help: engines)", err=True)
    recorded = samples.record("check", None, [], goals=verdicts,
                              measurements=list(measured.values()),
                              commit=checkpoint.all_commits())
    if out:
        samples.write(out, recorded)
        checkpoint.done()
    if as_json:
        click.echo(json.dumps(verdicts, indent=1))
    else:
        table(verdicts).show()
        for name, why in reasons(verdicts).items():
            click.echo(f"{name}: {why}")
    ctx.exit(int(bool(unmeasured) or not all(verdict["ok"] for verdict in verdicts)))
