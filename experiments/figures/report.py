"""One page of what was measured: opens without a network, by day, by night and on paper.

RESULTS are files that --out of compare, limits, check and labels, or `figure`, wrote. The page says
of each the machine, the devices, the commit and the spread; all comparisons stand beside what
CSMqGraph and GraphM published.
"""

import re
import shlex
from html import escape
from pathlib import Path

import click

from experiments.costs import labels
from experiments.devices.emulated import Spec
from experiments.figures import drawing, figures, last_level_cache, paper_results, verdict
from experiments.figures.figures import FIGURES, REQUEST_SIZES
from experiments.figures.request_sizes import described
from experiments.goals import check
from experiments.measure import limits, samples, summary
from experiments.measure.options import OUT_FILE
from experiments.workspace import StepFailed, size

STYLE = Path(__file__).with_name("report.css")


def facts(named: dict[str, str]) -> str:
    return "<dl>" + "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>"
                            for name, value in named.items()) + "</dl>"


def machine(recorded: dict) -> dict[str, str]:
    it = recorded["machine"]
    cpu = it["cpu"][0] if it["cpu"] else "unknown CPU"
    cold = ", where DAMON pages out what looks cold" if it.get("pages_out") else ""
    return {"machine": f"{it['cores']} × {cpu}, {size(it['memory_bytes'])}, "
                       f"Linux {it['kernel']}{cold}",
            "commit": recorded["commit"].replace("+", " and changes that are not committed"),
            "measured": recorded["date"],
            "command": "python -m experiments " + shlex.join(recorded["argv"])}


def devices(described: dict) -> dict[str, str]:
    if "spec" not in described:
        return {}
    spec = Spec(**described["spec"])
    each = f"{spec.bytes_per_second() / 1e6:.1f} MB/s each"
    dilated = f", dilated {spec.dilation:g} times" if spec.dilation != 1 else ""
    return {"devices": f"{len(described['devices'])} × emulated {spec.kind}, {each}{dilated}, "
                       f"{spec.filesystem}"}


def memory(recorded: dict) -> dict[str, str]:
    limit = recorded.get("memory_bytes")
    return {"memory limit": size(limit)} if limit else {}


# --- what a file of each command is shown as ---

def compare_body(recorded: dict) -> str:
    picture = ""
    if found := verdict.comparisons([paper_results.Run(recorded["samples"], kind_of(recorded))]):
        picture = picture_of(verdict.draw(found), recorded, "compare")
    return picture + summary.table(recorded["samples"]).html()


def limits_body(recorded: dict) -> str:
    return limits.table(recorded["samples"]).html()


def labels_body(recorded: dict) -> str:
    return labels.table(recorded["samples"]).html()


def kind_of(recorded: dict) -> str:
    return recorded.get("spec", {}).get("kind", "")


def picture_of(figure, recorded: dict, name: str) -> str:
    # A page may show the same figure twice, of different days.
    salt = re.sub(r"\W", "", name + recorded["date"])
    return f"<figure>{drawing.svg(figure, salt)}</figure>"


def figure_body(recorded: dict) -> str:
    figure = FIGURES[recorded["name"]]
    picture = picture_of(figures.draw(recorded), recorded, recorded["name"])
    below = f"<p class=note>{escape(figures.note(figure))}</p>"
    if recorded["name"] == REQUEST_SIZES:
        table = "".join(f"<p>{escape(sample['graph'])}: "
                        f"{escape(described(sample['request_sizes']))}</p>"
                        for sample in recorded["samples"])
    elif recorded["name"] == last_level_cache.NAME:
        table = last_level_cache.table(recorded["samples"]).html()
    else:
        table = summary.table(recorded["samples"]).html()
    return f"{picture}{below}{table}"


def check_body(recorded: dict) -> str:
    goals = check.table(recorded["goals"]).html()
    for word in ["ok", "short"]:
        goals = re.sub(rf"<td class=number( [^>]*)>{word}</td>", rf"<td class={word}\1>{word}</td>", goals)
    parts = [goals]
    if short := check.reasons(recorded["goals"]):
        parts.append(f"<h3>Where the time of those that are short goes</h3>{facts(short)}")
    for measured in recorded["measurements"]:
        parts.append(f"<h3>{escape(measured['measurement'])}</h3>{facts(devices(measured))}")
        if "failed" in measured:
            parts.append(f"<p class=short>{escape(measured['failed'])}</p>")
        elif summary.compares(measured["samples"]):
            parts.append(summary.table(measured["samples"]).html())
    return "".join(parts)


BODIES = {"compare": compare_body, "limits": limits_body, "figure": figure_body,
          "check": check_body, "labels": labels_body}


def title(recorded: dict) -> str:
    if recorded["what"] == "figure":
        return FIGURES[recorded["name"]].title
    return {"check": "The goals", "limits": "What the devices can do at most",
            "compare": "Comparison", "labels": "What labels cost"}[recorded["what"]]


def section(path: Path, recorded: dict) -> str:
    try:
        body = BODIES[recorded["what"]](recorded)
        told = facts(machine(recorded) | devices(recorded) | memory(recorded))
        badge = f"<span class=badge title='{escape(verdict.QUICK)}'>quick</span>" if verdict.is_quick(recorded) else ""
        return f"<section><h2>{escape(title(recorded))} {badge}</h2>{told}{body}</section>"
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise StepFailed(f"{path}: its samples cannot be read ({type(error).__name__}: {error}): "
                         "measure them again with this version") from None


def compared(results: dict[Path, dict]) -> list[paper_results.Run]:
    runs = []
    for recorded in results.values():
        for measured in recorded.get("measurements", [recorded]):
            runs.append(paper_results.Run(measured["samples"], measured.get("measurement", kind_of(measured))))
    return [run for run in runs if summary.compares(run.samples)]


def page(results: dict[Path, dict]) -> str:
    # First, as it names what cannot be read.
    sections = "".join(section(path, recorded) for path, recorded in results.items())
    runs = compared(results)
    paper_table = paper_results.table(runs)
    beside = paper_table.html() if paper_table.rows else ""
    if jobs := paper_results.jobs_table(runs):
        beside += jobs.html()
    return ("<!DOCTYPE html><html lang=en><head><meta charset=utf-8>"
            "<meta name=viewport content='width=device-width'>"
            f"<title>Graphlane, measured</title><style>{STYLE.read_text()}</style></head><body>"
            f"<h1>Graphlane, measured</h1>{first(results, runs)}{sections}"
            f"<section>{beside}</section></body></html>\n")


def first(results: dict[Path, dict], runs: list[paper_results.Run]) -> str:
    """The sentence, its picture and the words."""
    found = verdict.comparisons(runs)
    quick = any(map(verdict.is_quick, results.values()))
    badge = f"<p class=badge>{escape(verdict.QUICK)}</p>" if quick else ""
    picture = picture_of(verdict.draw(found), next(iter(results.values())), "verdict") if found else ""
    words = facts(verdict.WORDS)
    return (f"{badge}<p class=verdict>{escape(verdict.sentence(found))}</p>{goals_of(results)}{picture}"
            f"<details><summary>What the words mean</summary>{words}</details>")


def goals_of(results: dict[Path, dict]) -> str:
    judged = [goal for recorded in results.values() for goal in recorded.get("goals", [])]
    if not judged:
        return ""
    reached = sum(goal["ok"] for goal in judged)
    return f"<p>{reached} of {len(judged)} goals are reached.</p>"


@click.command(help=__doc__)
@click.argument("results", nargs=-1, required=True,
                type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--out", default="report.html", show_default=True,
              type=OUT_FILE)
def main(results, out):
    loaded = {path: samples.load(path) for path in results}
    for path, recorded in loaded.items():
        if recorded["what"] not in BODIES:
            raise StepFailed(f"{path}: of `{recorded['what']}`, which no report shows")
    text = page(loaded)
    out.write_text(text)
    click.echo(out)
