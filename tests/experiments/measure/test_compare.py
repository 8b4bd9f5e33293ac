"""`compare` and `limits` on small devices: they measure what they claim and leave nothing. No
test checks a speed."""

import json
import signal
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from commands import experiments, start, traces, wait_for_steps, wait_gone

from experiments.devices import cgroup
from experiments.devices.journal import command
from experiments.measure import compare, comparison, samples, summary
from experiments.measure.sizes import SIZE
from experiments.workloads import engines, fio
from experiments.workloads.jobs import Jobs
from experiments.workloads.reads import Read
from experiments.workloads.variants import BASELINE, CEILING, KIT, MOUNTED, PRELOADED, SHARED
from experiments.workspace import StepFailed

DEVICES = ["--count", "2", "--size", "256M"]
SHORT = ["--rounds", "1", "--ceiling-seconds", "0.5"]
BLOCK = 24 << 20


def of_variant(saved: dict) -> dict:
    return {sample["variant"]: sample for sample in saved["samples"]}


def test_read_moves_the_file_once_each_variant(kind, ready, tmp_path):
    out = tmp_path / "out.json"
    said = experiments("compare", "read", "--kind", kind, *DEVICES, "--file", "96M",
                       "--threads", "2", "--memory", "200M", *SHORT, "--out", out)
    saved = json.loads(out.read_text())
    found = of_variant(saved)
    assert set(found) == {BASELINE, MOUNTED, PRELOADED, CEILING}
    for variant in [BASELINE, MOUNTED, PRELOADED]:
        read = summary.device_total(found[variant], "bytes_read")
        # All bytes come from the devices. Readahead may add no more than this bound.
        assert 4 * BLOCK <= read <= 1.5 * 4 * BLOCK, variant
        assert found[variant]["memory_bytes_max"] <= 200 << 20
        assert all(counters["reads"] > 0 for counters in found[variant]["device_counters"])
    assert saved["spec"]["kind"] == kind and len(saved["devices"]) == 2 and saved["commit"]
    assert "speed-up" in said.stdout
    assert not traces(tmp_path)[1:]  # except the requested output


@pytest.mark.parametrize("ioengine", fio.ASYNCHRONOUS)
def test_reads_may_be_asynchronous(ioengine, ready, tmp_path):
    """The preload library does not see them, so that variant is left out."""
    out = tmp_path / "out.json"
    experiments("compare", "read", "--kind", "ssd", *DEVICES, "--file", "96M", "--threads", "1",
                "--direct", "--ioengine", ioengine, "--iodepth", "4", *SHORT, "--out", out)
    found = of_variant(json.loads(out.read_text()))
    assert set(found) == {BASELINE, MOUNTED, CEILING}
    for variant in [BASELINE, MOUNTED]:
        assert found[variant]["algorithm"] == f"read, {ioengine}, depth 4, O_DIRECT"
        assert found[variant]["bytes"] == 4 * BLOCK
        assert summary.device_total(found[variant], "bytes_read") >= 4 * BLOCK


def test_engine_computes_the_same_each_variant(ready, tmp_path, at):
    out = tmp_path / "out.json"
    experiments("devices", "up", "--kind", "hdd", *DEVICES, "--dilate", "0.1", "--at", at)
    before = sorted(at.rglob("*"))
    for algorithm in ["wcc", "pagerank"]:
        experiments("compare", "gridgraph", algorithm, "--at", at, "--scale", "12", *SHORT,
                    "--out", out)
        assert all(sample["seconds"] > 0 for sample in json.loads(out.read_text())["samples"])
        assert sorted(at.rglob("*")) == before
    (at / "d-1/lane").mkdir()
    (at / "d-1/lane/mine").write_text("not to be lost")
    before = sorted(at.rglob("*"))
    failed = experiments("compare", "gridgraph", "wcc", "--at", at, "--scale", "12",
                         *SHORT, check=False)
    assert failed.returncode == 1
    assert failed.stderr.splitlines()[-1].endswith("d-1/lane: is there already")
    assert sorted(at.rglob("*")) == before
    experiments("devices", "down", "--at", at)
    wait_gone(at)


def test_jobs_compute_the_same_each_variant_and_leave_no_directory(ready, tmp_path, at):
    out = tmp_path / "out.json"
    experiments("devices", "up", "--kind", "hdd", *DEVICES, "--dilate", "0.1", "--at", at)
    before = sorted(at.rglob("*"))
    for engine in ["jobs", "graphchi-jobs"]:
        experiments("compare", engine, "--at", at, "--scale", "12", "--jobs", "4", *SHORT,
                    "--out", out)
        found = of_variant(json.loads(out.read_text()))
        variants = {*compare.JOB_VARIANTS.values()} - {KIT}  # there is no build of the kit here
        assert set(found) == {*variants, CEILING}
        assert found[SHARED]["algorithm"] == "4 jobs"
        assert sorted(at.rglob("*")) == before
    experiments("devices", "down", "--at", at)
    wait_gone(at)


def test_jobs_in_memory_read_nothing(ready, tmp_path):
    out = tmp_path / "out.json"
    experiments("compare", "jobs", "--kind", "hdd", *DEVICES, "--scale", "14", "--jobs", "2", "--in-memory",
                "--variant", "baseline", "--variant", "shared", *SHORT, "--out", out)
    found = of_variant(json.loads(out.read_text()))
    edges_bytes = (engines.EDGES_PER_VERTEX << 14) * engines.EDGE_BYTES
    for variant in [BASELINE, SHARED]:
        assert found[variant]["algorithm"] == "2 jobs, in memory"
        assert summary.device_total(found[variant], "bytes_read") < edges_bytes / 4


def test_the_kit_is_the_same_jobs_by_other_programs():
    jobs = Jobs(engines.Grid("wcc", Path("/own"), None, 10, 3, None), 3, Path("/kit"))
    for job, other in zip(jobs.jobs, jobs.with_kit().jobs, strict=True):
        own, *words = job.words(Path("/grid"))
        assert other.words(Path("/grid")) == [Path("/kit") / own.name, *words]
        assert own.parent == Path("/own")


def test_random_submissions_are_reproducible():
    grid = engines.Grid("wcc", None, None, 10, 3, None)
    at_once, apart = Jobs(grid, 200), Jobs(grid, 200, gap=5)
    assert at_once.submitted == [0] * 200
    assert apart.submitted == sorted(apart.submitted) == Jobs(grid, 200, gap=5).submitted
    assert 4 < apart.submitted[-1] / 199 < 6
    assert [job.root for job in apart.jobs] == [job.root for job in at_once.jobs]
    assert apart.labels()["algorithm"] == "200 jobs, one in 5 s"
    chosen = Jobs(grid, 3, algorithms=("bfs", "pagerank"))
    assert [job.algorithm for job in chosen.jobs] == ["bfs", "pagerank", "bfs"]
    assert chosen.labels()["algorithm"] == "3 jobs of bfs, pagerank"


def test_a_trace_has_more_jobs_by_day_than_by_night():
    grid = engines.Grid("wcc", None, None, 10, 3, None)
    jobs = Jobs(grid, 400, gap=1, trace=True)
    day = 400 / 2
    by_day = sum(at % day < day / 2 for at in jobs.submitted) / 400
    assert 0.7 < by_day < 0.9
    assert jobs.submitted == sorted(jobs.submitted)
    assert 300 < jobs.submitted[-1] < 500
    assert jobs.labels()["algorithm"] == "400 jobs, one in 1 s, most by day"


def test_jobs_include_shortest_paths_where_all_variants_have_a_program(tmp_path):
    own, kit = tmp_path / "own", tmp_path / "kit"
    grid = engines.Grid("wcc", own, None, 10, 3, None)
    for made, mix in [(None, ["wcc", "pagerank", "bfs"]), (own, ["wcc", "pagerank", "bfs"]),
                      (kit, ["wcc", "pagerank", "sssp", "bfs"])]:
        if made:
            made.mkdir()
            (made / "sssp").touch()
        assert [job.algorithm for job in Jobs(grid, len(mix), kit).jobs] == mix
    job = Jobs(grid, 4).jobs[2]
    assert job.words(Path("/grid"))[:3] == [own / "sssp", Path("/grid"), job.root]


def test_roots_may_be_near_to_each_other(ready, tmp_path):
    grid = engines.Grid("wcc", None, None, 8, 1, None, partitions=2, density=2)
    jobs = Jobs(grid, 30, algorithms=("bfs",), hops=1)
    jobs.prepare(tmp_path)
    edges = np.fromfile(tmp_path / "column", "<i4").reshape(-1, 2)
    hub = np.bincount(edges[:, 0]).argmax()
    near = {hub, *edges[edges[:, 0] == hub, 1]}
    roots = {job.root for job in jobs.jobs_near_hub(tmp_path)}
    assert roots <= near < set(range(256))
    assert len(roots) > 3
    further = {job.root for job in replace(jobs, hops=2).jobs_near_hub(tmp_path)}
    assert not further <= near
    assert further <= near | set(edges[np.isin(edges[:, 0], list(near)), 1])
    assert jobs.labels()["algorithm"] == "30 jobs of bfs, roots within 1 hop"


def test_roots_are_vertices_of_the_graph_that_is_given(tmp_path):
    (tmp_path / "meta").write_text("0 7 100 2")
    jobs = Jobs(engines.Grid("wcc", None, tmp_path, 20, 3, None), 50)
    assert {job.root for job in jobs.jobs} == set(range(7))


def test_a_job_is_timed_from_its_submission(ready, tmp_path):
    grid = engines.Grid("wcc", None, None, 8, 1, None, partitions=2)
    jobs = Jobs(grid, 3, algorithms=("wcc",), gap=0.2)
    jobs.prepare(tmp_path)
    for got in [jobs.run(tmp_path, []), jobs.run_in_turn(tmp_path, [])]:
        assert got["seconds"] >= jobs.submitted[-1]
        ends = [job["submitted"] + job["seconds"] for job in got["jobs"]]
        assert max(ends) == pytest.approx(got["seconds"])
        assert all(job["seconds"] > 0 and job["algorithm"] == "wcc" for job in got["jobs"])


@pytest.mark.parametrize("run", [Jobs.run, Jobs.run_in_turn])
def test_jobs_that_take_too_long_are_ended(tmp_path, run):
    programs, grid = tmp_path / "programs", tmp_path / "grid"
    programs.mkdir()
    grid.mkdir()
    (grid / "column").touch()
    for name, script in [("wcc", "#!/bin/sh\n"), ("bfs", "#!/bin/sh\nexec sleep 1000\n")]:
        (programs / name).write_text(script)
        (programs / name).chmod(0o755)
    jobs = Jobs(engines.Grid("wcc", programs, None, 10, 1, None), 4,
                algorithms=("wcc", "bfs"), jobs_timeout=1)
    got = run(jobs, grid, [])
    assert 1 <= got["seconds"] < 500
    assert got["unfinished"] == (3 if run == Jobs.run_in_turn else 2)
    assert [path.name for path in grid.iterdir()] == ["column"]


def test_a_job_has_private_copies_of_files_that_it_changes(ready, tmp_path):
    jobs = Jobs(engines.Shards("wcc", None, 8, 1), 2)
    jobs.prepare(tmp_path)
    (tmp_path / "stranger").mkdir()
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with jobs.directories(tmp_path) as places:
        for place in places:
            assert {path.name for path in place.iterdir()} == {path.name for path in tmp_path.glob("graph?*")}
            linked = [path for path in place.rglob("*") if path.is_symlink()]
            assert linked and all(path.suffix == ".adj" for path in linked)
    got = jobs.run(tmp_path, [])
    assert [job["algorithm"] for job in got["jobs"]] == ["wcc", "pagerank"]
    assert got["edge_bytes"] == sum(path.stat().st_size for path in tmp_path.glob("*.adj"))
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_a_job_that_fails_is_named(tmp_path):
    grid = engines.Grid("wcc", None, None, 10, 1, None)
    with pytest.raises(StepFailed, match="wcc by grid_engine: .*/job-0/|pagerank by grid_engine: .*/job-1/"):
        Jobs(grid, 2).run(tmp_path, [])  # there is no grid
    assert not list(tmp_path.iterdir())


def test_limits_asks_every_device_and_all(kind, dropped_caches, tmp_path):
    out = tmp_path / "out.json"
    experiments("limits", "--kind", kind, *DEVICES, "--rounds", "1", "--seconds", "0.5",
                "--out", out)
    asked = {(s["kind"], s["devices"]) for s in json.loads(out.read_text())["samples"]}
    assert asked == {(k, d) for k in ["sequential 24 MiB", "random 4 KiB"]
                     for d in ["d-0", "d-1", "all at once"]}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_down_cleans_up_after_a_killed_measurement(ready, at, number):
    """The devices are slow: `down` must end the readers, and wait for their I/O."""
    experiments("devices", "up", "--kind", "hdd", *DEVICES, "--dilate", "20", "--at", at)
    process = start("compare", "read", "--at", at, "--file", "96M", "--threads", "2",
                    "--memory", "200M")
    wait_for_steps(process, at, lambda _: running_in_group(process.pid))
    assert process.poll() is None
    process.send_signal(number)
    said = process.communicate(timeout=60)
    assert process.returncode == (130 if number == signal.SIGTERM else -number), said
    experiments("devices", "down", "--at", at)
    wait_gone(at)
    assert not any(path.exists() for path in group_of(process.pid).paths)


def group_of(pid: int) -> cgroup.Group:
    return cgroup.named(f"graphlane-experiment-{pid}")


def running_in_group(pid: int) -> bool:
    try:
        return not group_of(pid).is_empty()
    except OSError:
        return False


@pytest.mark.parametrize("words, said", [
    (["--count", "1"], "nothing to stripe over"),
    (["--count", "2", "--size", "256M", "--file", "1G"], "give a larger --size")])
def test_an_impossible_option_is_one_line(ready, words, said):
    failed = experiments("compare", "read", "--kind", "hdd", "--file", "96M", *words, check=False)
    assert failed.returncode == 1
    *before, complaint = failed.stderr.splitlines()
    assert said in complaint and all(line.startswith("devices in ") for line in before)


# --- without devices ---

@pytest.mark.parametrize("engine, option", [("jobs", "--gridgraph-kit-bin"),
                                            ("graphchi-jobs", "--graphchi-kit-bin")])
def test_the_kit_needs_its_programs(engine, option):
    failed = experiments("compare", engine, "--variant", "kit", check=False)
    assert failed.returncode == 2
    assert failed.stderr.splitlines()[-1] == f"Error: --variant kit: it needs {option}"


def test_synchronous_reads_have_no_depth():
    failed = experiments("compare", "read", "--iodepth", "4", check=False)
    assert failed.returncode == 2
    assert failed.stderr.splitlines()[-1] == \
        "Error: --iodepth: psync waits for each read: give --ioengine libaio or io_uring"


def test_a_trace_needs_a_pace():
    failed = experiments("compare", "jobs", "--trace", check=False)
    assert failed.returncode == 2
    assert failed.stderr.splitlines()[-1] == "Error: --trace: how many jobs come by day: give --gap"


def test_file_has_as_many_blocks_for_every_thread():
    assert Read(100 << 20, 3, False).size == 3 * BLOCK
    with pytest.raises(StepFailed, match="too little for 8 threads"):
        Read(100 << 20, 8, False)


@pytest.mark.parametrize("threads", [1, 3, 4])
def test_engine_reads_take_every_block_once(tmp_path, threads):
    path = tmp_path / "file"
    with path.open("wb") as file:
        file.truncate(12 * BLOCK)
    trace = tmp_path / "trace"
    got = fio.fio(*fio.engine_words(path, 12 * BLOCK, threads, direct=False),
                  f"--write_iolog={trace}")
    # A line ends with "read OFFSET LENGTH"; versions of fio differ in its beginning.
    lines = [line.split() for file in tmp_path.glob("trace*")
             for line in file.read_text().splitlines()]
    offsets = sorted(int(words[-2]) for words in lines if words[-3:-2] == ["read"])
    assert offsets == [i * BLOCK for i in range(12)] and got["bytes"] == 12 * BLOCK


def test_ratio_is_of_medians_with_the_range_of_the_rounds():
    assert samples.ratio([2, 4, 9], [2, 2, 3]) == {"ratio": 2, "min": 1, "max": 3}
    assert samples.format_ratio({"ratio": 1.5, "min": 1.45, "max": 1.6}) == "1.50 (1.45–1.60)"
    assert samples.format_ratio({"ratio": 1.5, "min": 1, "max": 2}).endswith("?")
    assert samples.format_ratio({"ratio": 1.5, "min": 1.5, "max": 1.5}) == "1.50", "one round has none"


@pytest.mark.parametrize("text, size", [
    ("4096", 4096), ("12M", 12 << 20), ("1.5G", 3 << 29), ("210MB", 210_000_000)])
def test_sizes_are_those_of_the_graphlane_command(text, size):
    assert SIZE.convert(text, None, None) == size


def test_error_of_a_command_is_one_line():
    with pytest.raises(StepFailed, match="ls /nowhere: ls: cannot access") as failed:
        command("ls", "/nowhere")
    assert "\n" not in str(failed.value)
    with pytest.raises(StepFailed, match="no-such-program: not installed"):
        command("no-such-program")


def test_plain_files_of_the_volume_have_to_fit_beside_the_engines():
    """There is room for the grid (512 MiB), but not for its blocks (128 MiB) twice."""
    devices = SimpleNamespace(devices=[SimpleNamespace(size=lambda: 640 << 20)] * 2)
    grid = engines.Grid("wcc", None, None, scale=20, iterations=1, budget=None)
    comparison.check(devices, [comparison.Case(grid, 2, variants=(BASELINE,))])
    with pytest.raises(StepFailed, match="about 640 MiB of data on 2 devices with room for 576"):
        comparison.check(devices, [comparison.Case(grid, 2)])
