"""The report and the goals, on made-up samples."""

import json
import os
import platform
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from types import MappingProxyType

import pytest
from commands import experiments
from recorded import BYTES, DEVICE_BANDWIDTH, MB, SHARE, case_samples, ours, together

from harness import ROOT, run

from experiments import run_all
from experiments.__main__ import cli
from experiments.costs import mount_reads
from experiments.figures import paper_results
from experiments.figures.paper_results import Run
from experiments.figures.verdict import QUICK, comparisons, sentence
from experiments.goals import bottlenecks, check, goals, import_speed, in_memory, jobs_goals
from experiments.goals.goals import GOALS, MEASUREMENTS, Goal
from experiments.measure import comparison, samples, summary
from experiments.measure.options import Engines
from experiments.measure.plan import Plan
from experiments.measure.tables import Table
from experiments.workloads.variants import (
    BASELINE,
    CEILING,
    COMPUTE_ONLY,
    IN_TURN,
    KIT,
    MAPPED,
    MOUNTED,
    PRELOADED,
    SHARED,
)
from experiments.workspace import StepFailed

RIVAL = "CSMqGraph, 1 a device"


class Page(HTMLParser):
    """The URLs that a page loads, and its table cells."""

    def __init__(self, text: str):
        super().__init__()
        self.loads, self.cells, self.open = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name in ("src", "href", "xlink:href") and not value.startswith("#"):
                self.loads.append(value)
        if tag in ("script", "link"):
            self.loads.append(tag)
        self.open = tag

    def handle_data(self, data):
        if self.open in ("td", "th"):
            self.cells.append(data)


def write(directory, name: str, recorded: dict):
    path = directory / f"{name}.json"
    samples.write(path, recorded)
    return path


def checked(found: list[dict], name: str) -> dict:
    ours_of = [goal for goal in GOALS if goal.measurement == name]
    verdicts = [check.judge(goal, {"samples": found}) for goal in ours_of]
    kept = {"measurement": name, "samples": found,
            **{key: value for key, value in ours("check", []).items()
               if key in ("spec", "devices")}}
    return samples.record("check", None, [], goals=[v for v in verdicts if v],
                          measurements=[kept])


def test_report_is_one_page_that_says_all(tmp_path):
    grid = together(case_samples(algorithm="wcc"), case_samples(algorithm="bfs"),
                    with_compute_only(case_samples(algorithm="pagerank")))
    results = [write(tmp_path, "compare", ours("compare", case_samples())),
               write(tmp_path, "figure", ours("figure", case_samples(), name="device-ios")),
               write(tmp_path, "again", ours("figure", case_samples(), name="device-ios")),
               write(tmp_path, "check", checked(grid, "grid, hdd"))]
    out = tmp_path / "report.html"
    experiments("report", *results, "--out", out)
    text = out.read_text()
    page = Page(text)
    assert page.loads == [] and "url(http" not in text and "@import" not in text
    assert "prefers-color-scheme: dark" in text and "@media print" in text
    assert text.count("<svg") == 4, "of the verdict, the comparison, and two figures"
    recorded = ours("compare", [])
    for said in [recorded["commit"].rstrip("+"), recorded["machine"]["kernel"], "dilated 8 times",
                 "26.2 MB/s each", "240.0 MiB", "Fig. 13, §4.2", "577 K", "up to 1.40"]:
        assert said in text, said
    # The speed-up with its spread, and the ceiling's.
    assert "1.80" in page.cells and "2.00" in page.cells
    assert "short" in page.cells and "ok" in page.cells


def test_published_stands_beside_each_case_once():
    found = case_samples(device_count=4)
    table = paper_results.table([Run(found, "hdd"), Run(found, "hdd"), Run(found, "ssd")])
    rows = [row for row in table.rows if row[0] == "speed-up of wcc"]
    case = "grid_engine, rmat-21, 4 devices, depth 12M"
    assert [row[1:3] for row in rows] == [[case, "hdd"], [case, "ssd"]]
    assert rows[0][6:] == ["1", "1.20", "1.80", "2.00"]
    assert not any(row[0] == "speed-up of spmv" for row in table.rows)
    assert "Not measured: " in table.caption and "speed-up of spmv" in table.caption


@pytest.mark.parametrize("engine, rows", [
    ("grid_engine", [("time of one after the other", "2.6", "11.6", "3.00"),
                     ("time of all at once", "1.73", "13", "1.80"),
                     ("bytes read by one after the other", "about 1", "9.2", "2.00"),
                     ("bytes read by all at once", "about 1", "10.1", "2.00")]),
    ("GraphChi", [("time of one after the other", "6.8", "12.0", "3.00"),
                  ("time of all at once", "2.3", "3.1", "1.80")])])
def test_jobs_stand_beside_graphm(engine, rows):
    assert paper_results.jobs_table([Run(case_samples(), "hdd")]) is None
    share = {IN_TURN: 0.3, BASELINE: 0.5, SHARED: 0.9}
    found = case_samples(engine=engine, algorithm="16 jobs", share=share)
    found = [{**sample, "device_counters": sample["device_counters"][:1]}
             if sample["variant"] == SHARED else sample for sample in found]  # half of the bytes
    shown = paper_results.jobs_table([Run(found, "hdd")]).rows
    assert [(row[0], row[3], row[4], row[-1]) for row in shown] == rows


@pytest.mark.parametrize("text, said", [
    ("{", "not JSON"), ('{"samples": []}', "'what' is missing"),
    (json.dumps(ours("compare", [{"variant": "x"}])), "measure them again"),
    (json.dumps(ours("compare", [{"variant": "x", "device_count": 2}])), "measure them again"),
    (json.dumps(ours("dance", [])), "which no report shows")])
def test_a_file_that_is_no_result_is_named(tmp_path, text, said):
    path = tmp_path / "x.json"
    path.write_text(text)
    failed = experiments("report", path, "--out", tmp_path / "x.html", check=False)
    assert failed.returncode == 1 and said in failed.stderr and str(path) in failed.stderr
    assert failed.stderr.count("\n") == 1 and not (tmp_path / "x.html").exists()


def test_cells_are_text():
    assert '<td class=text data-label="&lt;i&gt;">&lt;b&gt;</td>' in Table(["<i>"], [["<b>"]]).html()


def shown(tmp_path, *recorded: dict) -> str:
    out = tmp_path / "report.html"
    experiments("report", *(write(tmp_path, f"{n}", one) for n, one in enumerate(recorded)), "--out", out)
    return out.read_text()


@pytest.mark.parametrize("share, said", [
    ({BASELINE: 0.5, MOUNTED: 0.505, PRELOADED: 0.9},
     "Preloaded, Graphlane is 1.80 times as fast as the OS striped volume; mounted, as fast."),
    ({BASELINE: 0.5, PRELOADED: 0.4}, "Preloaded, Graphlane is slower (0.80 times as fast) than the OS striped volume."),
    ({PRELOADED: 0.4}, "Nothing here compares Graphlane with the OS striped volume.")])
def test_report_begins_with_a_verdict(tmp_path, share, said):
    text = shown(tmp_path, ours("compare", case_samples(share=share)))
    assert f"</h1><p class=verdict>{said}</p>" in text
    assert ("<svg" in text[:text.index("<h2>")]) == (BASELINE in share), "the chart"


def test_verdict_is_of_all_cases():
    found = comparisons([Run(together(case_samples(), case_samples(
        algorithm="bfs", share={BASELINE: 0.5, PRELOADED: 0.6})), "hdd")])
    assert sentence(found) == (
        "Preloaded, Graphlane is 1.50 times as fast as the OS striped volume (median of 2 cases: 1.20 to 1.80); "
        "mounted, 1.20 times as fast.")


def test_a_quick_run_is_no_measurement(tmp_path):
    thorough, quick = (ours("compare", case_samples()) for _ in range(2))
    quick["argv"] = ["compare", "--quick"]
    assert "class=badge" not in shown(tmp_path, thorough)
    text = shown(tmp_path, thorough, quick)
    assert f"<p class=badge>{QUICK}</p>" in text and text.count("<span class=badge") == 1


def test_help_imports_nothing_that_draws():
    """Also the help of each command: matplotlib takes half a second."""
    program = ("import sys; from experiments import MODULES; from experiments.__main__ import cli\n"
               "for words in [[], *([name] for name in MODULES)]:\n"
               "    try: cli([*words, '--help'])\n"
               "    except SystemExit as ended: assert ended.code == 0, words\n"
               "print('matplotlib' in sys.modules)")
    said = run(sys.executable, "-c", program, cwd=ROOT).stdout
    assert said.endswith("False\n")
    assert "report         One page of what was measured" in said


def test_files_of_an_older_version_are_read(tmp_path):
    """They say way, least and most, and memory_bytes_most."""
    found = case_samples()
    text = json.dumps(ours("compare", found, goals=[{"ratio": 1, "min": 1, "max": 2}]))
    for new, old in [("variant", "way"), ("min", "least"), ("max", "most"), ("memory_bytes_max", "memory_bytes_most")]:
        assert f'"{new}"' in text
        text = text.replace(f'"{new}"', f'"{old}"')
    (tmp_path / "old.json").write_text(text)
    read = samples.load(tmp_path / "old.json")
    assert read["samples"] == found and read["goals"] == [{"ratio": 1, "min": 1, "max": 2}]


@pytest.mark.parametrize("quick", [False, True])
def test_run_all_runs_existing_commands(tmp_path, quick):
    given = ("--count", 4, "--size", "1G", "--dilate", 8)
    for out, words in run_all.steps(quick, devices=given).items():
        command = cli.get_command(None, words[0])
        devices = words[0] not in run_all.WITHOUT_DEVICES
        params = command.make_context("it", [*words[1:], "--out", str(tmp_path / out)]).params
        assert params["out"] == tmp_path / out and (params["count"] == 4 if devices else True)


def test_run_all_is_not_mixed_with_older_results(tmp_path):
    failed = experiments("run-all", tmp_path, check=False)
    assert failed.returncode == 1 and "there already" in failed.stderr
    assert failed.stderr.count("\n") == 1


@pytest.fixture
def quick_results(tmp_path, monkeypatch):
    """Results as `run-all DIR --quick` leaves them. Resuming only records the commands."""
    asked = []
    monkeypatch.setattr(run_all, "run", lambda *words: asked.append(words) or 0)
    devices = ("--count", 8, "--size", "3G", "--dilate", 8.0)
    for name, words in run_all.steps(quick=True, devices=devices).items():
        monkeypatch.setattr(sys, "argv", ["it", *words, "--resume", "--out", "elsewhere"])
        for path in run_all.results(tmp_path / name, words):
            path.parent.mkdir(exist_ok=True)
            samples.write(path, samples.record(words[0], None, [], goals=[{"ok": False}]))
    return asked


def test_run_all_rejects_quick_results_in_a_thorough_run(tmp_path, quick_results, monkeypatch):
    def refused(said, *options):
        with pytest.raises(StepFailed, match=re.escape(said)):
            run_all.main([str(tmp_path), "--resume", *options])
    refused("limits-hdd.json: measured by `limits --kind hdd --rounds 1 ")
    refused("--count 8 --size 3G --dilate 8.0`, not by", "--quick", "--count", "4")
    monkeypatch.setenv("GRIDGRAPH_BIN", "/mine")  # none of run-all's own options sets it
    refused("check.json: measured by `check --quick --count 8", "--quick")
    assert not quick_results


def test_run_all_is_of_the_graphs_that_are_given(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(run_all, "run", lambda *words: asked.append(words) or 0)
    (tmp_path / "grid").mkdir()
    with pytest.raises(SystemExit):
        run_all.main([str(tmp_path / "out"), "--scale", "12", "--scale", "13",
                         "--graph", str(tmp_path / "grid")])
    figures = [words for words in asked if words[:2] == ("figure", "all")]
    assert len(figures) == 2
    for words in figures:
        command = cli.get_command(None, words[0]).make_context("it", list(map(str, words[1:])))
        assert command.params["scales"] == (12, 13)
        assert command.params["graphs"] == (tmp_path / "grid",)


def test_run_all_goes_on_where_it_was_interrupted(tmp_path, quick_results):
    (tmp_path / "limits-ssd.json").write_text('{"what": "lim')
    (tmp_path / "figures-hdd/speed-up.json").unlink()  # one of many
    with pytest.raises(SystemExit) as ended:
        run_all.main([str(tmp_path), "--quick", "--resume"])
    assert ended.value.code == 1, "a goal was short"
    *asked, report = quick_results
    assert [words[:2] for words in asked] == [("limits", "--kind"), ("figure", "all")]
    assert report[0] == "report" and tmp_path / "check.json" in report
    for name in ["limits-ssd.json", "figures-hdd/speed-up.json"]:
        assert tmp_path / name not in report, "which is still not there"


# --- goals ---

def with_compute_only(found: list[dict], seconds: float = 5) -> list[dict]:
    alone = [{**sample, "variant": COMPUTE_ONLY, "seconds": seconds} for sample in found
             if sample["variant"] == BASELINE]
    return found + alone


def verdict(name: str, found: list[dict]) -> dict:
    (goal,) = [goal for goal in GOALS if goal.name == name]
    return check.judge(goal, {"samples": found})


def value(name: str, found: list[dict]) -> float:
    return verdict(name, found)["ratio"]


def test_every_goal_has_a_measurement_and_a_name_of_its_own():
    assert {goal.measurement for goal in GOALS} == set(MEASUREMENTS)
    assert len({goal.name for goal in GOALS}) == len(GOALS)


@pytest.mark.parametrize("at_most, ratio, ok", [
    (False, 1.4, True), (False, 1.39, False), (True, 1.4, True), (True, 1.41, False)])
def test_limit_itself_is_ok(at_most, ratio, ok):
    goal = Goal("x", "", "memory", lambda _: {"ratio": ratio, "min": 0, "max": 2}, 1.4,
                lambda *_: "it is", at_most)
    assert check.judge(goal, {"samples": []})["ok"] == ok


def test_goal_is_for_the_worst_case():
    better = {**SHARE, PRELOADED: 0.95}
    found = together(case_samples(algorithm="read", threads=1),
                     case_samples(algorithm="read", threads=8, share=better))
    assert value("hdd-preloaded-reads", found) == pytest.approx(0.9)
    assert value("hdd-mounted-reads", found) == pytest.approx(0.6)


def test_bytes_read_twice_do_not_count_as_speed():
    """Both variants had 0.9 of the ceiling, because the mount's bytes read twice were counted."""
    found = case_samples(algorithm="read", share={**SHARE, MOUNTED: 0.9})
    found = [{**sample, "bytes": BYTES / 1.5 if sample["variant"] == MOUNTED else BYTES}
             for sample in found]
    assert value("hdd-mounted-reads", found) == pytest.approx(0.6)
    assert value("hdd-preloaded-reads", found) == pytest.approx(0.9)
    why = verdict("hdd-mounted-reads", found)["why"]
    assert "2000 MB for 1333 that the program got in" in why and "0.90 of the ceiling" in why


def test_values_follow_from_the_samples():
    found = together(with_compute_only(case_samples(algorithm="pagerank")),
                     case_samples(algorithm="wcc"))
    assert value("hdd-pagerank-preloaded", found) == pytest.approx(1.8)
    assert value("hdd-wcc-mounted", found) == pytest.approx(1.2)
    assert value("hdd-device-ios", found) == pytest.approx(0.6)
    # The I/O alone takes 10 s, longer than to compute.
    assert value("hdd-overlap", found) == pytest.approx(1 / 0.9)
    found = with_compute_only(case_samples(algorithm="pagerank"), seconds=20)
    assert value("hdd-overlap", found) == pytest.approx(1 / 0.9 / 2, rel=0.02)


def test_hits_are_the_bytes_that_later_sweeps_did_not_read():
    asked = BYTES * 5 / (1 + 4 * 0.4)  # three fifths of four sweeps are hits
    found = [{**sample, "bytes": asked} for sample in case_samples(algorithm="sweeps")
             if sample["variant"] != MOUNTED]
    assert value("hdd-from-memory", found) == pytest.approx(0.6)


def busy_for(found: list[dict], variant: str, *shares: float, cores: float = 0.5) -> list[dict]:
    """The devices of the variant are busy for these shares of the time."""
    return [sample if sample["variant"] != variant else
            {**sample, "cpu_seconds": cores * sample["seconds"], "device_counters": [
                {**counters, "busy_seconds": share * sample["seconds"]}
                for counters, share in zip(sample["device_counters"], shares, strict=True)]}
            for sample in found]


@pytest.mark.parametrize("shares, cores, of_ceiling, said", [
    ((0.97, 0.95), 0.5, 0.9, "the devices' bandwidth is the limit"),
    ((0.97, 0.95), 0.5, 0.6, "busy, but with seeks between reads"),
    ((0.97, 0.30), 0.5, 0.6, "one device is the limit"),
    ((0.50, 0.45), 0.5, 0.6, "wait for each other"),
    ((0.50, 0.45), 0.95 * bottlenecks.CORES, 0.6, "the cores are the limit")])
def test_a_missed_goal_says_where_its_time_goes(shares, cores, of_ceiling, said):
    found = case_samples(share={**SHARE, PRELOADED: of_ceiling})
    found = busy_for(found, PRELOADED, *shares, cores=cores)
    short = verdict("hdd-half-cached-preloaded", found)
    ours, striped = short["why"].split(". ")[:2]
    assert said in ours and striped.startswith(BASELINE)
    assert short["why"].endswith("would come 2.00 times as fast.")


def test_a_reached_goal_gives_no_reason():
    assert "why" not in verdict("hdd-wcc-preloaded", case_samples())
    assert check.reasons([{"name": "a", "ok": True}, {"name": "b", "why": "c"}]) == {"b": "c"}


def test_linear_is_bandwidth_by_devices():
    slower = {variant: share * 0.8 for variant, share in SHARE.items()}
    found = [*case_samples(threads=8, device_count=2),
             *case_samples(threads=8, device_count=4, share=slower)]
    assert value("hdd-linear", found) == pytest.approx(0.8)
    assert goals.linearity(case_samples(threads=8)) is None


def test_csmqgraph_counts_where_it_was_measured():
    found = case_samples()
    assert goals.beside_csmqgraph(found) is None
    found += [{**sample, "variant": variant, "seconds": sample["seconds"] * by}
              for sample in found if sample["variant"] == PRELOADED
              for variant, by in [(RIVAL, 1.5), ("CSMqGraph, 3 a device", 1.2)]]
    assert value("hdd-csmqgraph", found) == pytest.approx(1.2)


def test_foreign_calls_count_by_the_one_that_costs_most():
    found = [{"variant": variant, "asked": asked, "nanoseconds": value}
             for asked, by_variant in {"read, foreign": [100, 104], "dup, foreign": [200, 212],
                                   in_memory.SMALL: [200, 400]}.items()
             for variant, value in zip([in_memory.PLAIN, in_memory.OVER_MOUNT], by_variant)]
    assert value("memory-foreign-calls", found) == 12
    assert value("memory-preloaded-4K", found) == 0.5
    assert verdict("memory-foreign-calls", found)["why"] == \
        "dup, foreign: 212 ns, without the library 200: 12 more."
    assert verdict("memory-preloaded-4K", found)["why"] == \
        "pread 4 KiB: 400 ns, without the library 200: 200 more."


def test_import_says_when_its_bytes_were_written():
    counters = {"writes": 50, "bytes_written": 100 * MB, "busy_seconds": 6}
    rows = [[1, 0, 0, 1 * MB], [2, 0, 0, 10 * MB], [7, 0, 0, 199 * MB], [9, 0, 0, 200 * MB]]
    found = [{"variant": import_speed.IMPORT, "seconds": 10, "timeline": rows, "bytes_per_second": 19 * MB,
              "device_counters": [counters, {**counters, "busy_seconds": 9}]},
             {"variant": import_speed.CEILING, "bytes_per_second": 25 * MB}]
    assert verdict("hdd-import", found)["why"] == (
        "10.0 s; what the devices wrote, 200 MB in 100 writes, takes 8.0 at the ceiling. 1% of it "
        "was written after 2.0 s, 99% after 7.0; devices were busy 0.60 to 0.90 of the time.")


def test_large_reads_report_the_time_of_one():
    found = [{"variant": variant, "asked": in_memory.asked(in_memory.BLOCK, 1, False), "round": 0,
              "bytes_per_second": in_memory.BLOCK / seconds}
             for variant, seconds in [(in_memory.PLAIN, 0.004), (in_memory.OVER_MOUNT, 0.005)]]
    assert value("memory-preloaded-24M", found) == pytest.approx(0.8)
    assert "takes 4000 µs a read, preloaded over a mount 5000, 1000 more." in verdict(
        "memory-preloaded-24M", found)["why"]
    assert verdict("memory-mounted-plain", found) is None, "the kernel cannot"


@pytest.mark.parametrize("passes", [True, False])
def test_plain_files_are_measured_where_the_kernel_has_passthrough(fuse, monkeypatch, passes):
    monkeypatch.setattr(in_memory, "passes_through", lambda path, daemon: passes)
    monkeypatch.setattr(in_memory, "calls", lambda *_: [])
    monkeypatch.setattr(in_memory, "KINDS", [("read", in_memory.BLOCK, 4, False)])
    monkeypatch.setattr(mount_reads, "MOVED", {in_memory.BLOCK: 192 << 20})
    found = in_memory.measure(96 << 20, rounds=1)
    assert (verdict("memory-mounted-plain", found) is not None) == passes
    assert verdict("memory-mounted-24M", found)


def test_passthrough_reads_bypass_the_daemon(graphlane, volume, mount, tmp_path, monkeypatch):
    monkeypatch.setattr(in_memory, "WAITS_SECONDS", 0.5)
    made = volume()
    for path in [made.path / "plain", tmp_path / "column"]:
        path.write_bytes(b"x")
    graphlane("import", tmp_path / "column", made.path)
    with mount(made) as at:
        daemon = mount_reads.daemon_of(at)
        assert not in_memory.passes_through(at / "column", daemon)
        linux = tuple(map(int, re.findall(r"\d+", platform.release())[:2]))
        assert in_memory.passes_through(at / "plain", daemon) == (linux >= (6, 9) and not os.geteuid())


def test_a_failed_measurement_misses_only_its_own_goals():
    verdict = check.judge(GOALS[0], {"samples": [], "failed": "no such thing"})
    assert not verdict["ok"] and verdict["failed"] == "no such thing"
    assert "failed" in check.table([verdict]).rows[0]


def test_unknown_goal_is_named():
    failed = experiments("check", "--only", "nothing*", check=False)
    assert failed.returncode == 1 and "no goal has this name" in failed.stderr
    assert failed.stderr.count("\n") == 1


@pytest.mark.parametrize("graphchi, memory, given", [
    (Path("/graphchi"), 240 << 20, {"wcc": 320 << 20, "pagerank": 240 << 20}),
    (None, 240 << 20, {"wcc": 240 << 20, "pagerank": 240 << 20}),
    (Path("/graphchi"), None, {"wcc": None, "pagerank": None})])
def test_graphchis_wcc_has_room_for_its_values(monkeypatch, graphchi, memory, given):
    def measure(devices, cases, memory_bytes):
        return [(case.workload.algorithm, memory_bytes) for case in cases]
    monkeypatch.setattr(comparison, "measure", measure)
    plan = Plan(device_counts=(2,), memory=memory, engines=Engines(graphchi=graphchi))
    found = MEASUREMENTS["shards, hdd"].measure(None, plan, {"memory_bytes": memory})
    assert dict(found) == given


def test_half_of_the_edges_are_those_of_the_graph_that_is_given(monkeypatch, tmp_path):
    monkeypatch.setattr(comparison, "measure", lambda devices, cases, memory_bytes: memory_bytes)
    with (tmp_path / "column").open("wb") as column:
        column.truncate(6 << 20)
    for graphs, edges in [((), 8 * 16 << 21), ((tmp_path,), 6 << 20)]:
        given = MEASUREMENTS["grid, half cached, hdd"].measure(
            None, Plan(device_counts=(2,), graphs=graphs), {})
        assert given == edges // 2 + goals.ENGINE_BYTES


def jobs(count: int, share: dict, of_each: dict = MappingProxyType({}), gap: float = 0, **differing) -> list[dict]:
    """Samples of `count` jobs at once."""
    pace = f", one in {gap:g} s" if gap else ""
    found = case_samples(algorithm=f"{count} jobs{pace}", share=share, **differing)
    return [sample if sample["variant"] == CEILING else
            {**sample, "edge_bytes": 160 * MB, "jobs": [
                {"seconds": sample["seconds"], "submitted": gap * i, **of_each} for i in range(count)]}
            for sample in found]


def test_jobs_are_judged_beside_in_turn_at_once_and_alone():
    in_turn = together(jobs(16, {IN_TURN: 0.05, KIT: 0.9}),
                       jobs(1, {PRELOADED: 0.8, SHARED: 0.75, KIT: 0.4}))
    assert value("jobs-kit-in-turn", in_turn) == pytest.approx(18)
    assert value("jobs-kit-bytes", in_turn) == pytest.approx(1)
    assert value("jobs-kit-alone", in_turn) == pytest.approx(2)
    assert value("jobs-transparent-alone", in_turn) == pytest.approx(0.8 / 0.75)
    at_once = jobs(16, {BASELINE: 0.05, SHARED: 0.2, KIT: 0.9},
                   {"turns_ns": 2e9, "buffer_bytes_max": 240 * MB})
    assert value("jobs-kit-at-once", at_once) == pytest.approx(18)
    assert value("jobs-transparent", at_once) == pytest.approx(4)
    assert "why" in verdict("jobs-transparent", at_once)
    submitted_at_once = together(jobs(16, {SHARED: 0.2}), jobs(1, {SHARED: 0.8}))
    assert value("jobs-transparent-bytes", submitted_at_once) == pytest.approx(1)
    (goal,) = [goal for goal in GOALS if goal.name == "jobs-transparent-bytes"]
    why = goal.why(submitted_at_once, goal.value(submitted_at_once))
    assert why.startswith("16 jobs, mounted and preloaded: ") and "By itself: " in why
    kit_seconds = BYTES / (0.9 * 2 * DEVICE_BANDWIDTH)
    assert value("jobs-kit-turns", at_once) == pytest.approx(2 / kit_seconds, rel=0.02)
    assert value("jobs-kit-memory", at_once) == pytest.approx(1.5)
    assert verdict("jobs-kit-turns", at_once)["why"].startswith("144 jobs of ")
    assert verdict("jobs-kit-memory", at_once)["why"] == (
        "240 MB of partitions were in memory at once, of 160 MB of edges; devices read 2000 MB for "
        "16 jobs.")
    assert "preloaded: " in verdict("jobs-kit-alone", in_turn)["why"]


def test_turns_are_a_share_of_all_jobs_time():
    """A job that ends soon, as everything is in memory when it comes, is the end of the range."""
    found = jobs(2, {KIT: 0.9})
    for sample in found:
        if sample["variant"] == KIT:
            for job, seconds, turns in zip(sample["jobs"], [9, 1], [0.5, 0.5], strict=True):
                job |= {"seconds": seconds, "turns_ns": turns * 1e9, "buffer_bytes_max": 1}
    turns = verdict("jobs-kit-turns", found)
    assert (turns["ratio"], turns["max"]) == pytest.approx((0.1, 0.5)) and turns["ok"]


def test_bytes_are_of_jobs_that_came_together():
    def reading(found, much):
        return [{**sample, "device_counters": [
            {**counters, "bytes_read": much * counters["bytes_read"]}
            for counters in sample["device_counters"]]} if sample["variant"] != CEILING else sample
            for sample in found]
    apart = reading(jobs(16, {IN_TURN: 0.05, KIT: 0.9}, gap=0.5), 1.5)
    together_ = reading(jobs(16, {KIT: 0.9}), 1.1)
    one = jobs(1, {PRELOADED: 0.8, SHARED: 0.75, KIT: 0.9})
    assert value("jobs-kit-bytes", together(apart, one)) == pytest.approx(1.5)
    found = together(apart, together_, one)
    assert value("jobs-kit-bytes", found) == pytest.approx(1.1)
    assert value("jobs-kit-in-turn", found) == pytest.approx(18), "which only those apart have"


@pytest.mark.parametrize("ended, share, says, ok", [
    ({BASELINE}, 0.9, "≥ 18.00", True), ({BASELINE}, 0.2, "≥ 4.00", False),
    ({SHARED}, 0.9, "≤ 18.00", False), ({BASELINE, SHARED}, 0.9, "? 18.00", False)])
def test_an_unfinished_variant_bounds_the_ratio(ended, share, says, ok):
    at_once = [{**sample, "unfinished": 3} if sample["variant"] in ended else sample for sample in
               together(jobs(16, {BASELINE: 0.05, SHARED: share}), jobs(1, {SHARED: 0.8}))]
    judged = verdict("jobs-transparent", at_once)
    assert samples.format_ratio(judged).startswith(says)
    assert judged["ok"] is ok
    assert verdict("jobs-transparent-bytes", at_once)["ok"] is (SHARED not in ended)
    took = {row[0]: row[2] for row in summary.table(at_once).rows if row[1] == "16 jobs"}
    assert {variant for variant in took if took[variant].startswith("≥")} == ended


def test_the_kits_goals_are_left_out_without_it():
    in_turn = jobs(1, {PRELOADED: 0.8, SHARED: 0.8})
    at_once = together(jobs(16, {BASELINE: 0.1, SHARED: 0.5}), jobs(1, {SHARED: 0.5}))
    static = together(at_once, jobs(16, {KIT: 0.9}))  # they do not report their turns
    for found, measurement, listed in [
            (in_turn, "jobs in turn, hdd", {"jobs-transparent-alone"}),
            (at_once, "jobs at once, hdd", {"jobs-transparent"}),
            (at_once, "jobs together, hdd", {"jobs-transparent-bytes"}),
            (at_once, "jobs in memory, hdd", {"jobs-memory-transparent"}),
            (static, "jobs at once, hdd", {"jobs-transparent", "jobs-kit-at-once"})]:
        goals = [goal.name for goal in GOALS if goal.measurement == measurement]
        assert {name for name in goals if verdict(name, found)} == listed


@pytest.mark.parametrize("kit, variants", [
    (None, {"jobs in turn, hdd": [(PRELOADED, SHARED)],
            "jobs at once, hdd": [(BASELINE, SHARED, MAPPED)],
            "jobs together, hdd": [(SHARED, MAPPED), *3 * [(SHARED,)], *3 * [(MAPPED,)]],
            "jobs in memory, hdd": [(BASELINE, SHARED, MAPPED)]}),
    (Path("/kit"), {
        "jobs in turn, hdd": [(IN_TURN, KIT), (KIT,), (KIT,), (PRELOADED, SHARED, KIT), (KIT,)],
        "jobs at once, hdd": [(BASELINE, SHARED, MAPPED, KIT)],
        "jobs together, hdd": [(SHARED, MAPPED), *3 * [(SHARED,)], *3 * [(MAPPED,)]],
        "jobs in memory, hdd": [(IN_TURN, BASELINE, SHARED, MAPPED, KIT)]})])
def test_jobs_are_compared_as_their_goals_want(monkeypatch, kit, variants):
    def measure(devices, cases, memory_bytes):
        assert all(case.device_count == 2 for case in cases)
        assert all(case.workload.model.scale == jobs_goals.SCALE for case in cases)
        limits = [None] if cases[0].in_memory else [
            jobs_goals.IN_TURN_MEMORY, jobs_goals.AT_ONCE_MEMORY,
            jobs_goals.AT_ONCE_MEMORY - 15 * jobs_goals.BUFFERS]
        assert memory_bytes in limits
        return [case.variants for case in cases]
    monkeypatch.setattr(comparison, "measure", measure)
    plan = Plan(device_counts=(2, 4), memory=240 << 20, engines=Engines(gridgraph_kit=kit))
    for name, wanted in variants.items():
        assert MEASUREMENTS[name].measure(None, plan, {"memory_bytes": 240 << 20}) == wanted


def test_files_made_twice_share_one_ceiling_a_round():
    found = [*jobs(16, {SHARED: 0.2}), *jobs(1, {SHARED: 0.8})]
    assert len([sample for sample in found if sample["variant"] == CEILING]) == 6
    rows = [row for row in summary.table(found).rows if row[0] == SHARED]
    assert [row[5].rstrip("?") for row in rows] == ["0.20", "0.80"]


def test_jobs_whose_buffers_have_no_room_are_refused():
    plan = Plan(device_counts=(2,), memory=240 << 20, job_count=19)
    with pytest.raises(StepFailed, match="19 jobs' buffers do not fit into 890M: give --jobs 18"):
        MEASUREMENTS["jobs together, hdd"].measure(None, plan, {"memory_bytes": 240 << 20})


# --- measured ---

def test_run_all_is_measured_once_and_reported(ready, tmp_path, monkeypatch, capfd):
    """All measurements except figures, in small."""
    monkeypatch.delenv("GRAPHLANE_TEST_DATA", raising=False)
    small = ["--quick", "--only", "ssd-import", "--file", "48M", "--ceiling-seconds", "0.5"]
    of = {"limits": ["--rounds", "1", "--seconds", "0.5"], "check": small,
          "labels": ["--scale", "8", "--rounds", "1"]}
    all_steps = run_all.steps

    def steps(*given):
        return {name: [*words, *of[words[0]]] for name, words in all_steps(*given).items()
                if words[0] in of}
    monkeypatch.setattr(run_all, "steps", steps)
    directory = tmp_path / "results"
    words = [str(directory), "--count", "2", "--size", "256M", "--dilate", "0.5"]
    for more in [[], ["--resume"]]:
        with pytest.raises(SystemExit) as ended:
            run_all.main([*words, *more])
        measured = [json.loads(path.read_text()) for path in directory.glob("*.json")]
        assert len(measured) == 4
        short = any(map(run_all.has_short_goals, measured))
        said = capfd.readouterr()
        assert ended.value.code == int(short), said.err
        commands = [line.split()[4] for line in said.out.splitlines() if line.startswith("$ ")]
        assert commands == (["report"] if more else ["limits", "limits", "check", "labels", "report"])
        text = (directory / "report.html").read_text()
        assert "sweep that labels" in text and "import: share of what the devices can write" in text


def test_check_measures_and_says_so_by_exit_status(ready, tmp_path):
    out = tmp_path / "check.json"
    said = experiments("check", "--quick", "--only", "ssd-engines-*", "--only", "ssd-import",
                       "--count", "2", "--size", "256M", "--scale", "12", "--file", "48M",
                       "--dilate", "0.5", "--ceiling-seconds", "0.5", "--json", "--out", out,
                       check=False)
    verdicts = json.loads(said.stdout)
    assert {verdict["name"] for verdict in verdicts} == {
        "ssd-engines-preloaded", "ssd-engines-mounted", "ssd-import"}, said.stderr
    assert said.returncode == (0 if all(verdict["ok"] for verdict in verdicts) else 1)
    assert all(verdict["ratio"] > 0 for verdict in verdicts)
    experiments("report", out, "--out", tmp_path / "report.html")
    assert MOUNTED in (tmp_path / "report.html").read_text()
