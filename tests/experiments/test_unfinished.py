"""An interrupted measurement resumes from its finished samples."""

import json
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from experiments import comparison
from experiments.comparison import CEILING, STRIPED, Case
from experiments.unfinished import Unfinished
from experiments.workloads import Read
from experiments.workspace import StepFailed

CASES = [Case(Read(960 << 20, threads, direct=False), count, ways=(STRIPED,))
         for count in [2, 4] for threads in [1, 2]]


def never():
    raise AssertionError("measured again")


def test_finished_samples_are_kept(tmp_path):
    path = tmp_path / "x.unfinished"
    Unfinished(path, {"rounds": 1}).sample({"way": "a", "round": 0}, lambda: {"seconds": 2})
    again = Unfinished(path, {"rounds": 1}, resume=True)
    assert again.sample({"round": 0, "way": "a"}, never) == {"seconds": 2}
    assert again.sample({"round": 1, "way": "a"}, lambda: {"seconds": 3}) == {"seconds": 3}
    again.done()
    assert not path.exists()


def test_a_torn_line_is_measured_again(tmp_path):
    path = tmp_path / "x.unfinished"
    begun = Unfinished(path)
    for way in "ab":
        begun.sample({"way": way}, lambda: {"seconds": 2})
    path.write_text(path.read_text()[:-5])
    again = Unfinished(path, resume=True)
    assert again.has({"way": "a"}) and not again.has({"way": "b"})
    again.sample({"way": "b"}, lambda: {"seconds": 4})
    assert Unfinished(path, resume=True).sample({"way": "b"}, never) == {"seconds": 4}


def test_without_resume_all_is_measured_anew(tmp_path):
    path = tmp_path / "x.unfinished"
    Unfinished(path).sample({"way": "a"}, lambda: {"seconds": 2})
    Unfinished(path)
    assert '"way": "a"' in (tmp_path / "x.unfinished~").read_text().replace('\\"', '"'), "by mistake, perhaps"
    assert not Unfinished(path, resume=True).has({"way": "a"})


def test_other_options_are_refused_and_named(tmp_path):
    path = tmp_path / "x.unfinished"
    Unfinished(path, {"rounds": 1, "count": 2}).sample({"way": "a"}, lambda: {"seconds": 2})
    with pytest.raises(StepFailed, match=r"x\.unfinished: begun by other options \(count\)"):
        Unfinished(path, {"rounds": 1, "count": 4}, resume=True)
    assert Unfinished(path, {"rounds": 1, "count": 2}, resume=True).has({"way": "a"})


def test_a_missing_directory_is_named_before_any_measurement(tmp_path):
    with pytest.raises(StepFailed, match="nowhere/x.unfinished: No such file"):
        Unfinished(tmp_path / "nowhere/x.unfinished")


def test_measurements_keep_their_samples_apart(tmp_path):
    """Two measurements of `check --quick` share the kit's jobs, among others."""
    path = tmp_path / "x.unfinished"
    begun = Unfinished(path)
    assert begun.part("in turn").sample({"way": "kit"}, lambda: {"seconds": 2}) == {"seconds": 2}
    assert begun.part("at once").sample({"way": "kit"}, lambda: {"seconds": 3}) == {"seconds": 3}
    again = Unfinished(path, resume=True)
    assert again.part("in turn").sample({"way": "kit"}, never) == {"seconds": 2}
    assert again.all_commits() == begun.all_commits()


def test_samples_of_two_commits_name_both(tmp_path):
    path = tmp_path / "x.unfinished"
    begun = Unfinished(path)
    begun.commit = "before"
    begun.sample({"way": "a"}, lambda: {"seconds": 2})
    again = Unfinished(path, resume=True)
    again.commit = "after"
    assert again.all_commits() == "before"
    again.sample({"way": "b"}, lambda: {"seconds": 2})
    assert again.all_commits() == "before, after"


def test_a_second_sample_of_the_same_is_another(tmp_path):
    """The ceiling, for example, is measured twice for the same files, in other memory."""
    path = tmp_path / "x.unfinished"
    for resume in [False, True]:
        unfinished = Unfinished(path, resume=resume)
        for seconds in [2, 3]:
            got = unfinished.sample({"way": CEILING}, lambda: {"seconds": seconds})
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

    def sample(self, case, way):
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
    path = tmp_path / "x.unfinished"

    def measure(resume: bool, left: int):
        Interrupted.left = left
        return comparison.measure(devices, CASES, 1, 1.0, None, Unfinished(path, {}, resume))

    with pytest.raises(KeyboardInterrupt):
        measure(resume=False, left=4)  # three of two devices, one of four
    found = measure(resume=True, left=99)
    whole = [(count, what) for count in [2, 4] for what in [1, 2, CEILING]]
    assert Interrupted.asked == whole, "each once, in order"
    assert [sample["seconds"] for sample in found] == list(range(1, len(whole) + 1))
    assert [sample["way"] for sample in found] == [STRIPED, STRIPED, CEILING] * 2
    assert Interrupted.prepared == 3, "nothing for two devices the second time"
    lines = path.read_text().splitlines()
    assert len(lines) == 1 + len(whole) and all(map(json.loads, lines))
    devices.spec.dilation = 16  # other devices are there now
    measure(resume=True, left=99)
    assert Interrupted.asked == whole * 2
