"""A sample's description of its machine."""

import errno
from pathlib import Path

import pytest

from experiments.measure import samples


@pytest.fixture
def kdamonds(tmp_path):
    scheme = tmp_path / "0/contexts/0/schemes/0"
    scheme.mkdir(parents=True)
    (tmp_path / "0/state").write_text("on\n")
    (scheme / "action").write_text("pageout\n")
    return tmp_path


@pytest.mark.parametrize(("state", "action", "is_so"), [
    ("on", "pageout", True), ("off", "pageout", False), ("on", "stat", False)])
def test_a_kdamond_that_runs_pages_out(kdamonds, state, action, is_so):
    (kdamonds / "0/state").write_text(state + "\n")
    next(kdamonds.rglob("action")).write_text(action + "\n")
    assert samples.pages_out(kdamonds) == is_so


@pytest.mark.parametrize(("errors", "is_so"), [
    ([errno.EBUSY], True), ([errno.EBUSY] * 1000, False),
    ([errno.EACCES], False), ([errno.ENOENT], False)])
def test_missing_damon_values_are_no_error(kdamonds, monkeypatch, errors, is_so):
    read, left = Path.read_text, iter(errors)

    def refused(path):
        for error in left:
            raise OSError(error, "refused", str(path))
        return read(path)
    monkeypatch.setattr(Path, "read_text", refused)
    monkeypatch.setattr(samples, "BUSY_SECONDS", 0)
    assert samples.pages_out(kdamonds) == is_so
