"""Control groups of either version: on files that stand in for them, and on this machine."""

import shutil
import subprocess
from pathlib import Path

import pytest

from experiments.devices import cgroup
from experiments.workspace import StepFailed


@pytest.fixture
def mounted(tmp_path, monkeypatch):
    """mounted("cgroup", "memory"): a hierarchy of this type with these options or controllers.
    Removing a directory removes its files too, as for groups."""
    monkeypatch.setattr(cgroup, "MOUNTS", tmp_path / "mounts")
    monkeypatch.setattr(Path, "rmdir", shutil.rmtree)
    (tmp_path / "mounts").write_text("proc /proc proc rw 0 0\n")

    def add(kind: str, controllers: str) -> Path:
        at = tmp_path / f"{kind}-{controllers}"
        at.mkdir()
        (at / "cgroup.controllers").write_text(controllers.replace(",", " ") + "\n")
        with (tmp_path / "mounts").open("a") as mounts:
            mounts.write(f"{kind} {at} {kind} rw,{controllers} 0 0\n")
        return at

    return add


def files(directory: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in directory.iterdir()}


def test_version_1_has_a_hierarchy_for_each_controller(mounted):
    mounted("cgroup2", "hugetlb")
    memory, cpu = mounted("cgroup", "memory"), mounted("cgroup", "cpu,cpuacct")
    group = cgroup.named("g", 5 << 20)
    group.begin(1 << 20)
    assert files(memory / "g") == {"memory.limit_in_bytes": str(6 << 20)} and not files(cpu / "g")
    assert group.enter()[-2:] == [str(memory / "g/cgroup.procs"), str(cpu / "g/cgroup.procs")]
    (cpu / "g/cpuacct.usage").write_text("1500000000\n")
    (memory / "g/memory.max_usage_in_bytes").write_text("4096\n")
    assert group.cpu_seconds() == 1.5 and group.max_bytes() == 4096


def test_version_1_may_not_count_cpu_time(mounted):
    mounted("cgroup", "memory")
    group = cgroup.named("g")
    group.begin()
    assert group.cpu_seconds() is None and not files(group.memory)


def test_version_2_has_one_hierarchy(mounted):
    root = mounted("cgroup2", "cpu,memory")
    group = cgroup.named("g", 5 << 20)
    group.begin()
    assert (root / "cgroup.subtree_control").read_text() == "+memory"
    assert files(root / "g") == {"memory.max": str(5 << 20)}
    assert group.enter()[-1] == str(root / "g/cgroup.procs")
    (root / "g/cpu.stat").write_text("usage_usec 1500000\nuser_usec 1\n")
    (root / "g/memory.peak").write_text("4096\n")
    assert group.cpu_seconds() == 1.5 and group.max_bytes() == 4096


def test_version_2_does_not_swap_limited_programs(mounted, monkeypatch):
    mounted("cgroup2", "memory")
    monkeypatch.setattr(Path, "exists", lambda path: path.name == "memory.swap.max")
    group = cgroup.named("g", 5 << 20)
    group.begin()
    assert files(group.memory) == {"memory.max": str(5 << 20), "memory.swap.max": "0"}


def test_version_1_does_not_swap_either(mounted, monkeypatch):
    mounted("cgroup", "memory")
    monkeypatch.setattr(Path, "exists", lambda path: path.name == "memory.memsw.limit_in_bytes")
    group = cgroup.named("g", 5 << 20)
    group.begin()
    assert files(group.memory) == {"memory.limit_in_bytes": str(5 << 20),
                                   "memory.memsw.limit_in_bytes": str(5 << 20)}


def test_earlier_usage_is_not_counted(mounted):
    mounted("cgroup2", "memory")
    group = cgroup.named("g")
    group.begin()
    (group.memory / "memory.peak").write_text("4096\n")
    group.begin()
    assert files(group.memory) == {}


def test_a_machine_without_memory_groups_is_reported(mounted):
    root = mounted("cgroup2", "cpu")
    with pytest.raises(StepFailed, match="no control groups with the memory controller"):
        cgroup.named("g")
    (root / "cgroup.controllers").write_text("memory\n")
    (root / "cgroup.subtree_control").mkdir()  # no process can write to a directory
    with pytest.raises(StepFailed, match=f"{root}: gives no group its memory controller: Is a"):
        cgroup.named("g").begin()


# --- here ---

def test_a_program_is_counted_and_limited(root):
    try:
        group = cgroup.named("graphlane-test-limited", 64 << 20)
        group.begin()
    except (StepFailed, OSError) as failed:
        pytest.skip(f"not applicable: {failed}")

    def hold(mib: int) -> int:
        return subprocess.run([*group.enter(), "python3", "-c", f"print(len(bytearray({mib} << 20)))"],
                              stdout=subprocess.PIPE).returncode
    try:
        assert hold(32) == 0
        assert 32 << 20 <= group.max_bytes() <= 64 << 20
        assert group.cpu_seconds() != 0 and group.is_empty()
        assert hold(128) == -9
        group.begin(128 << 20)
        assert group.max_bytes() < 1 << 20
        assert hold(128) == 0
    finally:
        group.remove()
