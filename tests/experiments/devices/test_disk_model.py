"""disk_model --explain prints the model's times for I/Os. disk_model_test.cc tests the
arithmetic; this file tests that the program's options reach it."""

import pytest

from harness import run

MIB = 1 << 20
STREAM = 1000 * MIB


@pytest.fixture
def explain(engines):
    def ask(ios, *options) -> list[list[float]]:
        """Offset, length, then milliseconds: seek, rotation, transfer, end."""
        lines = "".join(" ".join(map(str, io)) + "\n" for io in ios)
        said = run(engines / "disk_model", "--explain", *options, input=lines, stdin=None)
        return [[float(word) for word in line.split()] for line in said.stdout.splitlines()[1:]]
    return ask


def test_sequential_stream_has_the_bandwidth(explain):
    *_, last = explain([(i * MIB, MIB) for i in range(210)], "--bandwidth", MIB * 210)
    assert last[5] == pytest.approx(1000, abs=0.01)


def test_dilation_slows_all_by_one_factor(explain):
    ios = [(i % 2 * STREAM + i * MIB, MIB) for i in range(100)]
    for quick, slow in zip(explain(ios), explain(ios, "--dilation", 8)):
        assert [8 * ms for ms in quick[2:]] == pytest.approx(slow[2:], abs=0.01)


@pytest.mark.parametrize("chunk, loss_min, loss_max", [(MIB, 0.3, 0.7), (8 * MIB, 0.05, 0.25)])
def test_second_stream_costs(explain, chunk, loss_min, loss_max):
    *_, last = explain([(i % 2 * STREAM + i // 2 * chunk, chunk) for i in range(200)])
    share = 200 * chunk / (last[5] / 1000) / 210e6
    assert loss_min < 1 - share < loss_max


def test_ssds_have_no_seeks_and_so_many_ios(explain):
    ios = [(i % 2 * STREAM + i * 4096, 4096) for i in range(100)]
    for _, _, *seek, transfer, _ in explain(ios, "--flash", "--iops", 1000, "--dilation", 4):
        assert seek == [0, 0] and transfer == pytest.approx(4)


def test_bad_line_is_named(engines):
    said = run(engines / "disk_model", "--explain", input="one two\n", stdin=None, check=False)
    assert said.returncode == 2 and "'one two': not OFFSET LENGTH" in said.stderr
