"""Each figure is drawn from samples alone, and shows their values."""

import json
import shutil
import xml.etree.ElementTree as xml
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from commands import experiments, wait_gone
from recorded import MB, SHARE, case_samples, ours, together

from harness import BUILD

from experiments.figures import drawing, figure, figures, last_level_cache
from experiments.figures.figures import DEPTHS, FIGURES, THREADS
from experiments.figures.request_sizes import described, parse
from experiments.measure import samples, summary
from experiments.measure.options import Engines
from experiments.measure.plan import Plan, counts_up_to
from experiments.workloads.variants import (
    BASELINE,
    CEILING,
    IN_TURN,
    KIT,
    KIT_VARIANTS,
    MOUNTED,
    PARTS,
    PRELOADED,
    SHARED,
    disabled_parts,
    preloaded_without,
)

SIZES = [{"graph": "rmat-21", "partitions": 4, "request_sizes": [1 << 19, 3 << 20, 24 << 20]}]

MISSES = [{"round": 0, "variant": variant, "graph": "rmat-18", "job_count": 16, "cache_bytes": 1 << 20,
           "counted_by": last_level_cache.CACHEGRIND, "accesses": 1_000_000, "misses": misses}
          for variant, misses in zip(last_level_cache.VARIANTS, [400_000, 500_000, 125_000])]


def made_up(name: str) -> list[dict]:
    """Samples for each of the figure's cases."""
    if name == figures.REQUEST_SIZES:
        return SIZES
    if name == last_level_cache.NAME:
        return MISSES
    kit = Path("/kit") if name == figures.SCHEDULING else None
    cases = FIGURES[name].cases(Plan(device_counts=(2, 4), scales=(20, 21),
                                     engines=Engines(gridgraph_kit=kit)))
    return together(*(case_samples(share={variant: SHARE.get(variant, 0.7) for variant in case.variants},
                                   **case.labels()) for case in cases))


@pytest.mark.parametrize("name", FIGURES)
def test_is_drawn_from_samples(name):
    recorded = json.loads(json.dumps(ours("figure", made_up(name), name=name)))
    alone = drawing.svg(figures.draw(recorded), name, alone=True)
    assert alone == drawing.svg(figures.draw(recorded), name, alone=True)
    tree = xml.fromstring(alone)
    text = " ".join(tree.itertext())
    if name in {**figures.FLASHGRAPH, **figures.HUS}:
        assert {"bfs", "wcc", "varint"} & set(text.split())
    elif name in figures.MAITER:
        assert "relative" in text or "seconds" in text or "lists" in text
    elif name not in figure.WITHOUT_DEVICES:
        assert (KIT if name == figures.SCHEDULING else PRELOADED) in text
    assert drawing.INK not in alone and "currentColor" in alone
    ids = [element.get("id") for element in tree.iter() if element.get("id")]
    assert ids and all(each.startswith(f"{name}-") for each in ids)


@pytest.mark.parametrize("name", [name for name in FIGURES if name not in figure.WITHOUT_DEVICES])
def test_a_variant_without_room_for_a_case_is_left_out(name):
    """CSMqGraph has so many buffers for each thread and device that they do not fit with more
    devices."""
    found = made_up(name)
    found = found + [{**sample, "variant": "rival"} for sample in found if sample["variant"] == PRELOADED]
    last = summary.cases(found)[-1]
    left = [sample for sample in found
            if not (sample["variant"] == "rival" and samples.matches(sample, last))]
    drawing.svg(figures.draw(ours("figure", left, name=name)), name)


def test_cases_are_those_of_the_paper():
    plan = Plan(device_counts=counts_up_to(6), scales=(20, 21))
    assert plan.device_counts == (2, 4, 6) and counts_up_to(5) == (2, 4, 5)
    by_depth = FIGURES["stripe-depth"].cases(plan)
    assert [case.depth for case in by_depth] == list(DEPTHS)
    assert [case.workload.threads for case in FIGURES["io-threads"].cases(plan)] == list(THREADS)
    assert len(FIGURES["speed-up"].cases(plan)) == 3 * 3 * 2  # spmv needs GridGraph


def heights(axes) -> list[float]:
    return [round(bar.get_height(), 3) for bar in axes.patches]


def test_bandwidth_is_of_each_device_and_of_the_ceiling():
    above, below = FIGURES["bandwidth-by-devices"].draw(
        case_samples(device_count=2) + case_samples(device_count=4)).axes
    # Each variant has a bar for two devices and one for four. The middle round is 1% slow.
    assert heights(above) == [49.505, 49.505, 59.406, 59.406, 89.109, 89.109]
    assert heights(below) == [0.5, 0.5, 0.6, 0.6, 0.9, 0.9]


def test_speed_up_is_over_the_striped_volume():
    panels = FIGURES["speed-up"].draw(case_samples()).axes
    assert [heights(panel) for panel in panels] == [[1.2], [1.8]]
    assert [panel.get_ylabel() for panel in panels] == [
        f"{variant}, times as fast as the\nOS striped volume" for variant in [MOUNTED, PRELOADED]]


def test_scaling_is_relative_to_the_fewest_devices():
    (panel,) = FIGURES["scaling"].draw(case_samples(device_count=4) +
                                       case_samples(device_count=2)).axes
    for line in panel.get_lines():
        assert list(line.get_ydata()) == pytest.approx([1, 0.5])


def test_ablation_is_over_the_striped_volume_of_the_coarse_case():
    """Each variant of each case has a time of its own, so that a misplaced bar is noticed."""
    cases = FIGURES["ablation"].cases(Plan(device_counts=(2, 4)))
    coarse, fine = {BASELINE: 1, PRELOADED: 2.0}, {PRELOADED: 2.1}
    for number, part in enumerate(PARTS, 2):
        coarse[preloaded_without(part)] = 2 + number / 10
        fine[figures.only_with(part)] = 1 + number / 10
    fine[figures.only_with(None)], coarse[figures.only_with(None)] = 1.0, 1.1
    found = together(*(case_samples(share={variant: speed_ups[variant] / 4 for variant in case.variants}, **case.labels())
                       for case, speed_ups in zip(cases, [coarse, fine], strict=True)))
    above, below = FIGURES["ablation"].draw(found).axes
    assert heights(above) == [2.0, 2.1, 2.2, 2.3, 2.4, 2.5, 2.6]
    assert heights(below) == [1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6]
    for panel in [above, below]:
        assert [label.get_text() for label in panel.get_xticklabels()] == [
            "nothing", "striping", *PARTS]
    for case in cases:
        for variant in set(case.variants) - {BASELINE, PRELOADED}:
            assert set(disabled_parts(variant).split(",")) <= set(PARTS)
    assert disabled_parts(PRELOADED) == ""
    assert disabled_parts(preloaded_without("lanes", "cache")) == "lanes,cache"


JOB_SHARE = {IN_TURN: 0.4, BASELINE: 0.5, SHARED: 0.8}


def test_jobs_are_tried_each_variant_by_pace_number_and_cores():
    plan = Plan(device_counts=(2, 4), job_count=8)
    names = {name: [case.labels()["algorithm"] for case in FIGURES[name].cases(plan)]
             for name in figures.JOBS}
    assert names["jobs-time"] == names["jobs-io"] == ["8 jobs"]
    assert names["jobs-arrivals"] == [
        "8 jobs", *(f"8 jobs, one in {gap} s" for gap in ["0.5", "1", "2"])]
    assert names["jobs-count"] == [f"{count} jobs of pagerank" for count in [1, 2, 4, 8]]
    assert names["jobs-cores"][0] == "8 jobs, on 1 core"
    for case in [case for name in figures.JOBS for case in FIGURES[name].cases(plan)]:
        assert KIT not in case.variants and case.device_count == 4
    with_kit = replace(plan, engines=Engines(None, Path("/graphchi"), (), Path("/kit"), Path("/kit")))
    assert all(KIT in case.variants for name in figures.JOBS for case in FIGURES[name].cases(with_kit))
    assert names["jobs-trace"] == ["8 jobs, one in 2 s, most by day"]
    assert names["jobs-distance"] == ["8 jobs of bfs, roots within 1 hop",
                                      "8 jobs of bfs, roots within 2 hops",
                                      "8 jobs of bfs, roots within 3 hops"]
    assert names["jobs-scheduling"] == []
    (scheduling,) = FIGURES["jobs-scheduling"].cases(with_kit)
    assert scheduling.variants == KIT_VARIANTS


@pytest.mark.parametrize("countable", [True, False])
def test_missing_counters_are_left_out(monkeypatch, countable):
    monkeypatch.setattr(last_level_cache, "can_count", lambda: countable)
    assert (last_level_cache.NAME in figures.group("all-jobs", with_kit=True)) == countable


def test_values_of_the_kit_are_left_out_without_it(monkeypatch):
    monkeypatch.setattr(last_level_cache, "can_count", lambda: True)
    for name in figures.GROUPS:
        assert set(figures.GROUPS[name]) - set(figures.group(name, with_kit=False)) <= {"jobs-scheduling"}
        assert figures.group(name, with_kit=True) == figures.GROUPS[name]


@pytest.mark.parametrize("kit", [False, True])
def test_all_of_a_group_are_measured_and_drawn(tmp_path, monkeypatch, kit):
    def measure(names, at, algorithms, options, checkpoint):
        return {name: {"name": name, "samples": []} for name in names}
    monkeypatch.setattr(figure, "measure", measure)
    monkeypatch.setattr(figures, "draw", lambda recorded: drawing.panels(1)[0])
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "pagerank").touch()
    done = CliRunner().invoke(figure.main, ["all-jobs", "--out", str(tmp_path / "out"), *(
        ["--gridgraph-kit-bin", str(programs)] if kit else [])])
    assert done.exit_code == 0, done.output
    assert {path.stem for path in tmp_path.glob("out/*.svg")} == set(figures.group("all-jobs", kit))


def test_a_figure_of_one_algorithm_has_all_its_variations():
    plan = Plan(device_counts=(4,)).on("ssd")
    every = figure.cases_of("flashgraph-12", plan, ())
    chosen = figure.cases_of("flashgraph-12", plan, ("wcc",))
    assert len(every) == 8 and len(chosen) == 4
    assert all(case.labels()["algorithm"].startswith("wcc") for case in chosen)
    assert figure.cases_of("flashgraph-12", plan, ("pagerank",)) == []


def test_jobs_have_a_bar_each_variant():
    found = case_samples(share=JOB_SHARE, algorithm="4 jobs")
    (panel,) = FIGURES["jobs-io"].draw(found).axes
    assert heights(panel) == [2000] * 3
    (panel,) = FIGURES["jobs-breakdown"].draw(found).axes
    whole, cpu, busy = [heights(panel)[i:i + 3] for i in (0, 3, 6)]
    assert cpu == pytest.approx([seconds / 2 for seconds in whole], rel=1e-3)
    assert busy == pytest.approx([seconds * share for seconds, share
                                  in zip(whole, JOB_SHARE.values())], rel=1e-3)


def test_misses_are_a_share_and_bytes():
    above, below = FIGURES[last_level_cache.NAME].draw(MISSES).axes
    assert heights(above) == [40, 50, 12.5]
    assert heights(below) == [25.6, 32, 8]
    assert [row[-2:] for row in last_level_cache.table(MISSES).rows] == [
        ["40.0%", "26"], ["50.0%", "32"], ["12.5%", "8"]]


@pytest.mark.parametrize("said, counted", [
    ("1000,,LLC-loads:u,9,100.00,,\n250,,LLC-load-misses:u,9,100.00,,\n", (1000, 250)),
    ("<not supported>,,LLC-loads:u,0,100.00,,\n<not supported>,,LLC-load-misses:u,0,100.00,,\n",
     None)])
def test_counters_count_where_perf_has_them(tmp_path, monkeypatch, said, counted):
    perf = tmp_path / "perf"  # stat -x, -o OUT …
    perf.write_text(f"#!/bin/sh\nprintf '# started on Monday\\n\\n{said}' > \"$4\"\n")
    perf.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert last_level_cache.count_by_perf(["true"]) == counted
    assert last_level_cache.counts_by_perf() == bool(counted)


def test_figures_share_their_samples():
    plan = Plan(device_counts=(4,))
    cases = [case for each in FIGURES.values() for case in each.cases(plan)]
    labels = [case.labels() for case in figure.merged(cases)]
    assert len(labels) == len({tuple(each.items()) for each in labels})
    of_ablation = FIGURES["ablation"].cases(plan)
    sample = {**of_ablation[0].labels(), "variant": preloaded_without("cache")}
    assert figure.belongs(sample, of_ablation)
    assert not figure.belongs(sample, FIGURES["bandwidth"].cases(plan))


def test_over_time_is_of_the_average_device():
    sample = next(sample for sample in case_samples() if sample["variant"] == PRELOADED)
    edges, much = figures.steps(sample, "bytes_read")
    assert edges[0] == 0 and edges[-1] == pytest.approx(sample["seconds"])
    assert much == pytest.approx([180 * MB] * 4)


def test_a_short_run_has_one_step():
    edges, much = figures.steps({"timeline": [[0.1, 5, 10], [0.2, 10, 30]]}, "bytes_read")
    assert edges == [0, 0.2] and much == pytest.approx([150])


def test_lengths_asked_for_are_read_from_a_trace():
    trace = ('12 pread64(4, "\\0\\1, 7"..., 8192, 0) = 8192\n'
             '13 pread64(4,  <unfinished ...>\n'
             '12 pread64(4, "", 4096, 8192) = -1 EIO (Input/output error)\n'
             '13 <... pread64 resumed>"\\220"..., 25165824, 12288) = 25165824\n')
    assert parse(trace) == [8192, 25165824]
    assert described([1 << 19, 3 << 20]) == "50% larger than 1 MiB, mean 1.8 MiB, of 2"


def test_wrong_samples_are_one_line(tmp_path):
    path = tmp_path / "x.json"
    for text, said in [("{", "not JSON"), ("[]", "'what' is missing"),
                       (json.dumps(ours("figure", [], name="scaling")), "but of scaling")]:
        path.write_text(text)
        failed = experiments("figure", "speed-up", "--from", path, "--out", tmp_path / "x.svg",
                             check=False)
        assert failed.returncode == 1 and said in failed.stderr
        assert failed.stderr.count("\n") == 1 and not (tmp_path / "x.svg").exists()


def test_the_figure_does_not_take_its_samples_place(tmp_path):
    path = tmp_path / "x.json"
    path.write_text(json.dumps(ours("figure", [], name="speed-up")))
    before = path.read_text()
    failed = experiments("figure", "speed-up", "--from", path, "--out", path, check=False)
    assert failed.returncode == 2 and "the SVG's name" in failed.stderr
    assert path.read_text() == before


# --- measured ---

def test_engine_asks_for_its_columns(engines, tmp_path):
    if BUILD.name == "asan":
        pytest.skip("not applicable: LeakSanitizer does not run under strace")
    out = tmp_path / "sizes.svg"
    experiments("figure", "request-sizes", "--quick", "--scale", "12", "--scale", "13", "--out",
                out)
    found = json.loads(out.with_suffix(".json").read_text())["samples"]
    assert [sample["graph"] for sample in found] == ["rmat-12", "rmat-13"]
    for sample, scale in zip(found, [12, 13]):
        # wcc sweeps over all edges, and then over fewer. Reads are rounded up to pages.
        assert sum(sample["request_sizes"]) >= 8 * 16 << scale
        assert all(size % 4096 == 0 for size in sample["request_sizes"])


def test_measures_every_depth_and_draws_again_without(ready, at, tmp_path):
    """The volume is restriped between samples, on the first two of three devices."""
    experiments("devices", "up", "--kind", "hdd", "--count", "3", "--size", "256M", "--dilate",
                "0.1", "--at", at)
    before = sorted(at.rglob("*"))
    out = tmp_path / "depths.svg"
    experiments("figure", "stripe-depth", "--quick", "--at", at, "--scale", "12",
                "--ceiling-seconds", "0.5", "--out", out)
    assert sorted(at.rglob("*")) == before
    recorded = json.loads(out.with_suffix(".json").read_text())
    found = recorded["samples"]
    assert {sample["stripe_depth"] for sample in found if sample["variant"] != CEILING} == set(DEPTHS)
    assert set(summary.variants(found)) == {BASELINE, MOUNTED, PRELOADED}
    assert all(len(sample["device_counters"]) == 2 for sample in found)
    assert all(sample["timeline"][-1][2] == summary.device_total(sample, "bytes_read")
               for sample in found if sample["variant"] != CEILING)
    again = tmp_path / "again.svg"
    experiments("figure", "stripe-depth", "--from", out.with_suffix(".json"), "--out", again)
    assert again.read_text() == out.read_text()
    experiments("devices", "down", "--at", at)
    wait_gone(at)


def test_samples_record_their_origin():
    recorded = samples.record("limits", None, [])
    assert recorded["commit"] and recorded["date"].endswith("+00:00")
    assert recorded["machine"]["kernel"] and recorded["machine"]["memory_bytes"] > 0


def test_samples_of_an_unpacked_archive_are_of_an_unknown_commit(tmp_path, monkeypatch):
    monkeypatch.setattr(samples, "ROOT", tmp_path)
    assert samples.commit() == "unknown"
    monkeypatch.setenv("PATH", str(tmp_path))  # there is no git either
    assert samples.commit() == "unknown"


def test_jobs_miss_less_by_chunks(tmp_path, monkeypatch):
    """Simulated, so equal each time."""
    if shutil.which("valgrind") is None:
        pytest.skip("not applicable: no valgrind here")
    monkeypatch.setattr(last_level_cache, "counts_by_perf", lambda: False)
    monkeypatch.setattr(last_level_cache, "SIMULATED_BYTES", 128 << 10)
    found = last_level_cache.measure(Plan(device_counts=(2,), job_count=8), rounds=3)
    misses = {sample["variant"]: sample["misses"] for sample in found}
    assert len(found) == 3 and {sample["counted_by"] for sample in found} == {"cachegrind"}
    assert misses["at once, by chunks"] < misses["in turn"] < misses["at once"]
