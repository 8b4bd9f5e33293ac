"""Measures a figure of CSMqGraph, or of GraphM (`jobs-`), on this machine, and draws it. (`ablation` is
Graphlane's own: the gain of each of its parts.)

`all`, and `all-jobs` for GraphM, measure once what several figures need. --from draws earlier samples and
measures nothing. The samples are written beside the figure: NAME.json beside NAME.svg.
"""

import tempfile
from dataclasses import replace
from pathlib import Path

import click

from experiments.figures import drawing, figures, last_level_cache
from experiments.figures.figures import FIGURES, GROUPS, REQUEST_SIZES
from experiments.figures.request_sizes import request_sizes
from experiments.measure import comparison, samples
from experiments.measure.checkpoint import RESUME, Checkpoint, measured_options
from experiments.measure.options import chosen_devices, spec_of
from experiments.measure.plan import Plan, plan_of, plan_options
from experiments.workloads.variants import CEILING
from experiments.workspace import StepFailed


def belongs(sample: dict, cases: list[comparison.Case]) -> bool:
    """To the samples of a figure with such cases."""
    if sample["variant"] == CEILING:
        return any(sample["device_count"] == case.device_count and
                   sample["graph"] == case.workload.files for case in cases)
    return any(samples.matches(sample, case.labels()) and sample["variant"] in case.all_variants()
               for case in cases)


def merged(cases: list[comparison.Case]) -> list[comparison.Case]:
    """The union of several figures' cases, each with all variants that one of the figures needs."""
    by_labels = {}
    for case in cases:
        before = by_labels.get(tuple(case.labels().items()), case)
        variants = tuple(dict.fromkeys([*before.variants, *case.variants]))
        rivals = tuple(dict.fromkeys([*before.rivals, *case.rivals]))
        by_labels[tuple(case.labels().items())] = replace(before, variants=variants, rivals=rivals)
    return list(by_labels.values())


def sizes(plan: Plan) -> list[dict]:
    """The sizes of the engine's requests."""
    found = []
    for of in range(len(plan.grids())):
        workload = plan.grid("wcc", plan.max_devices, of=of).workload
        with tempfile.TemporaryDirectory(prefix="graphlane-figure-") as directory:
            asked = request_sizes(workload, Path(directory))
        found.append({**workload.labels(), "partitions": workload.partitions,
                      "request_sizes": asked})
    return found


# Measurements without devices, as functions of the plan and the number of rounds.
WITHOUT_DEVICES = {REQUEST_SIZES: lambda plan, rounds: sizes(plan),
                   last_level_cache.NAME: last_level_cache.measure}


def measure_without(name: str, plan: Plan, how: dict) -> dict:
    found = WITHOUT_DEVICES[name](plan, how["rounds"])
    return samples.record("figure", None, found, name=name)


def cases_of(name: str, plan: Plan, algorithms: tuple[str, ...]) -> list[comparison.Case]:
    """The figure's, of these algorithms; of none: of all."""
    return [case for case in FIGURES[name].cases(plan)
            if not algorithms or case.labels()["algorithm"].split(",")[0] in algorithms]


def measure(names: list[str], at, algorithms: tuple[str, ...], options: dict, checkpoint: Checkpoint) -> dict[str, dict]:
    """Name -> what is to be kept as JSON."""
    if set(names) <= set(WITHOUT_DEVICES):
        spec = spec_of(options)
        plan, how = plan_of(options, spec.count)
        return {name: measure_without(name, plan.on(spec.kind), how) for name in names}
    with chosen_devices(at, options) as devices:
        plan, how = plan_of(options, len(devices.devices))
        plan = plan.on(devices.spec.kind)
        cases = merged([case for name in names for case in cases_of(name, plan, algorithms)])
        if not cases and algorithms:
            raise StepFailed(f"{' '.join(names)}: has none of: {', '.join(algorithms)}")
        if not cases:
            raise StepFailed(f"{' '.join(names)}: nothing to compare: give --gridgraph-kit-bin")
        found = comparison.measure(devices, cases, **how, checkpoint=checkpoint)
        measured = {}
        for name in names:
            ours = [sample for sample in found if belongs(sample, cases_of(name, plan, algorithms))]
            measured[name] = measure_without(name, plan, how) if name in WITHOUT_DEVICES else \
                samples.record("figure", devices, ours, name=name,
                               memory_bytes=how["memory_bytes"], commit=checkpoint.all_commits())
    return measured


def load(path: Path, name: str) -> dict:
    recorded = samples.load(path)
    if recorded.get("name") != name:
        raise StepFailed(f"{path}: holds no samples of {name}, but of "
                         f"{recorded.get('name', recorded['what'])}")
    return recorded


@click.command(help=__doc__)
@click.argument("name", type=click.Choice([*FIGURES, *GROUPS]))
@plan_options
@click.option("--algorithm", "algorithms", multiple=True,
              help="Only this algorithm of the figure; may be given several times.")
@click.option("--from", "source", type=click.Path(exists=True, dir_okay=False, path_type=Path),
              help="Draw from these samples instead of measuring.")
@click.option("--out", type=click.Path(path_type=Path),
              help="The SVG to write, or the directory for several. [NAME.svg, figures]")
@RESUME
@click.pass_context
def main(ctx, name, at, algorithms, source, out, resume, **options):
    if name in GROUPS:
        if source:
            raise click.UsageError(f"--from draws one figure: give its name, not '{name}'")
        directory = out or Path("figures")
        directory.mkdir(parents=True, exist_ok=True)
        names = figures.group(name, options["gridgraph_kit_bin"] is not None)
        targets = {each: directory / f"{each}.svg" for each in names}
        kept = directory / f"{name}.checkpoint"
    else:
        if out and out.suffix in [".json", ".checkpoint"]:
            raise click.UsageError(f"--out {out}: is the SVG's name; the samples go beside it, "
                                   f"into {out.with_suffix('.json')}")
        targets = {name: out or Path(f"{name}.svg")}
        kept = targets[name].with_suffix(".checkpoint")
    checkpoint = Checkpoint(None if source else kept, measured_options(ctx), resume)
    recorded = {name: load(source, name)} if source else \
        measure(list(targets), at, algorithms, options, checkpoint)
    if not source:
        for each, target in targets.items():
            samples.write(target.with_suffix(".json"), recorded[each])
    for each, target in targets.items():
        target.write_text(drawing.svg(figures.draw(recorded[each]), each, alone=True))
        click.echo(target)
    checkpoint.done()
