"""An interrupted measurement resumes from its finished samples."""

import json
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from experiments.measure import comparison
from experiments.measure.checkpoint import Checkpoint
from experiments.measure.comparison import Case
from experiments.workloads.reads import Read
from experiments.workloads.variants import BASELINE, CEILING
from experiments.workspace import StepFailed

CASES = [Case(Read(960 << 20, threads, direct=False), count, variants=(BASELINE,))
         for count in [2, 4] for threads in [1, 2]]


def never():
    raise AssertionError("measured again")


def test_finished_samples_are_kept(tmp_path):
    path = tmp_path / "x.checkpoint"
    Checkpoint(path, {"rounds": 1}).sample({"variant": "a", "round": 0}, lambda: {"seconds": 2})
    again = Checkpoint(path, {"rounds": 1}, resume=True)
    assert again.sample({"round": 0, "variant": "a"}, never) == {"seconds": 2}
    assert again.sample({"round": 1, "variant": "a"}, lambda: {"seconds": 3}) == {"seconds": 3}
    again.done()
    assert not path.exists()


def test_a_torn_line_is_measured_again(tmp_path):
    path = tmp_path / "x.checkpoint"
    begun = Checkpoint(path)
    for variant in "ab":
        begun.sample({"variant": variant}, lambda: {"seconds": 2})
    path.write_text(path.read_text()[:-5])
    again = Checkpoint(path, resume=True)
    assert again.has({"variant": "a"}) and not again.has({"variant": "b"})
    again.sample({"variant": "b"}, lambda: {"seconds": 4})
    assert Checkpoint(path, resume=True).sample({"variant": "b"}, never) == {"seconds": 4}


def test_without_resume_all_is_measured_anew(tmp_path):
    path = tmp_path / "x.checkpoint"
    Checkpoint(path).sample({"variant": "a"}, lambda: {"seconds": 2})
    Checkpoint(path)
    assert '"variant": "a"' in (tmp_path / "x.checkpoint~").read_text().replace('\\"', '"'), "by mistake, perhaps"
    assert not Checkpoint(path, resume=True).has({"variant": "a"})


def test_other_options_are_refused_and_named(tmp_path):
    path = tmp_path / "x.checkpoint"
    Checkpoint(path, {"rounds": 1, "count": 2}).sample({"variant": "a"}, lambda: {"seconds": 2})
    with pytest.raises(StepFailed, match=r"x\.checkpoint: begun by other options \(count\)"):
        Checkpoint(path, {"rounds": 1, "count": 4}, resume=True)
    assert Checkpoint(path, {"rounds": 1, "count": 2}, resume=True).has({"variant": "a"})


def test_a_checkpoint_of_an_older_version_is_not_resumed(tmp_path):
    (tmp_path / "x.unfinished").write_text('{"options": {}}\n')
    with pytest.raises(StepFailed, match="x.unfinished: of an older version"):
        Checkpoint(tmp_path / "x.checkpoint", {}, resume=True)
    Checkpoint(tmp_path / "x.checkpoint", {})


def test_a_missing_directory_is_named_before_any_measurement(tmp_path):
    with pytest.raises(StepFailed, match="nowhere/x.checkpoint: No such file"):
        Checkpoint(tmp_path / "nowhere/x.checkpoint")


def test_measurements_keep_their_samples_apart(tmp_path):
    """Two measurements of `check --quick` share the kit's jobs, among others."""
    path = tmp_path / "x.checkpoint"
    begun = Checkpoint(path)
    assert begun.part("in turn").sample({"variant": "kit"}, lambda: {"seconds": 2}) == {"seconds": 2}
    assert begun.part("at once").sample({"variant": "kit"}, lambda: {"seconds": 3}) == {"seconds": 3}
    again = Checkpoint(path, resume=True)
    assert again.part("in turn").sample({"variant": "kit"}, never) == {"seconds": 2}
    assert again.all_commits() == begun.all_commits()


def test_samples_of_two_commits_name_both(tmp_path):
    path = tmp_path / "x.checkpoint"
    begun = Checkpoint(path)
    begun.commit = "before"
    begun.sample({"variant": "a"}, lambda: {"seconds": 2})
    again = Checkpoint(path, resume=True)
    again.commit = "after"
    assert again.all_commits() == "before"
    again.sample({"variant": "b"}, lambda: {"seconds": 2})
    assert again.all_commits() == "before, after"


def test_a_second_sample_of_the_same_is_another(tmp_path):
    """The ceiling, for example, is measured twice for the same files, in other memory."""
    path = tmp_path / "x.checkpoint"
    for resume in [False, True]:
        checkpoint = Checkpoint(path, resume=resume)
        for seconds in [2, 3]:
            got = checkpoint.sample({"variant": CEILING}, lambda: {"seconds": seconds})
            assert got == {"seconds": seconds}
    assert len(path.read_text().splitlines()) == 3


class Interrupted:
    """Replaces a Comparison that is interrupted after so many samples."""

    left = 0
    asked = []
    prepared = 0

    def __init__(self, devices, striped, group):
        self.count = len(devices.devices)

    def prepare(self, case):
        Interrupted.prepared += 1

    def one(self, what):
        if Interrupted.left == 0:
            raise KeyboardInterrupt
        Interrupted.left -= 1
        Interrupted.asked.append((self.count, what))
        return {"seconds": len(Interrupted.asked)}

    def sample(self, case, variant):
        return self.one(case.workload.threads)

    def ceiling(self, seconds):
        return self.one(CEILING)


def test_measuring_goes_on_after_an_interruption(tmp_path, monkeypatch):
    monkeypatch.setattr(comparison, "Comparison", Interrupted)
    monkeypatch.setattr(comparison, "check", lambda devices, cases: None)
    monkeypatch.setattr(comparison, "first", lambda devices, count: SimpleNamespace(
        devices=range(count)))
    for name in ["btrfs_raid0", "workload_group"]:
        monkeypatch.setattr(comparison, name, lambda *_: nullcontext())
    devices = SimpleNamespace(spec=SimpleNamespace(kind="hdd", dilation=8), journal=None)
    path = tmp_path / "x.checkpoint"

    def measure(resume: bool, left: int):
        Interrupted.left = left
        return comparison.measure(devices, CASES, 1, 1.0, None, Checkpoint(path, {}, resume))

    with pytest.raises(KeyboardInterrupt):
        measure(resume=False, left=4)  # three of two devices, one of four
    found = measure(resume=True, left=99)
    whole = [(count, what) for count in [2, 4] for what in [1, 2, CEILING]]
    assert Interrupted.asked == whole, "each once, in order"
    assert [sample["seconds"] for sample in found] == list(range(1, len(whole) + 1))
    assert [sample["variant"] for sample in found] == [BASELINE, BASELINE, CEILING] * 2
    assert Interrupted.prepared == 3, "nothing for two devices the second time"
    lines = path.read_text().splitlines()
    assert len(lines) == 1 + len(whole) and all(map(json.loads, lines))
    devices.spec.dilation = 16  # other devices are there now
    measure(resume=True, left=99)
    assert Interrupted.asked == whole * 2
