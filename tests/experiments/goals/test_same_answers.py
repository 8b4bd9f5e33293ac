"""same-answers: engines agree on a small graph, and one that does not is an error."""

import numpy as np
import pytest
from click.testing import CliRunner

from harness import BUILD

from experiments.goals import same_answers

pytestmark = pytest.mark.skipif(not (BUILD / "python/site/graphlane").is_dir(),
                                reason="not applicable: the Python package is built in the release build alone")


@pytest.fixture
def told(monkeypatch):
    """Runs the command with these engines: its result."""
    monkeypatch.setattr(same_answers, "SITE", BUILD / "python/site")

    def run(engines):
        monkeypatch.setattr(same_answers, "ENGINES", engines)
        return CliRunner().invoke(same_answers.main, ["--scale", "5"])

    return run


def test_engines_agree(told):
    wanted = [engine for engine in same_answers.ENGINES if engine[0].startswith(("Graphlane", "igraph", "scipy"))]
    result = told([*wanted, ("Other", "nowhere", "no_such_package", None)])
    assert result.exit_code == 0, result.output
    assert "Other: left out: no package no_such_package" in result.output
    for name, *_ in wanted:
        assert f"| {name} |" in result.output


def test_another_answer_is_an_error(told):
    def wrong(case, name):
        values = same_answers.by_scipy(case, name)
        return np.where(np.arange(len(values)) == 3, values[0] + 1, values)

    result = told([("scipy", "right", "scipy", same_answers.by_scipy), ("wrong", "wrong", "scipy", wrong)])
    assert isinstance(result.exception, same_answers.StepFailed)
    assert "**1 vertices**" in result.output
