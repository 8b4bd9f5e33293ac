"""`soak` for some seconds: it kills processes, and detects errors."""

import re

import pytest
from commands import experiments

from harness import SANITIZED

from experiments.goals import soak

pytestmark = pytest.mark.skipif(SANITIZED,
                                reason="not applicable: experiments are never sanitized")


def test_jobs_die_and_the_others_are_right():
    said = experiments("soak", "--minutes", "0.1", "--jobs", "8", "--scale", "14").stdout
    jobs, ended = re.match(r"(\d+) jobs: (.*)", said).groups()
    assert sum(int(number) for number in re.findall(r"(\d+) ", ended)) == int(jobs)
    assert "survived" in ended and "killed" in ended
    assert "coordinator after" in said


def test_a_job_with_different_output_is_wrong(tmp_path):
    words = ("sh", "-c", "echo $PPID $$")  # never the same
    found = soak.Soak(tmp_path, 8, seed=1)
    job = soak.Job(words, tmp_path, "lives", at=0, rest=0)
    job.program.process.wait()
    found.check_ended(job)
    assert len(found.wrong) == 1
    killed = soak.Job(("sh", "-c", "kill -9 $$"), tmp_path, "lives", at=0, rest=0)
    killed.program.process.wait()
    found.check_ended(killed)
    assert found.wrong[1].startswith("-c, which lives: status -9")


def test_growth_of_a_process_is_detected():
    before = soak.Resources(7, 10, 4 << 20)
    assert not soak.Resources(7, 10, 8 << 20).is_more_than(before)
    for more in [soak.Resources(8, 10, 4 << 20), soak.Resources(7, 11, 4 << 20), soak.Resources(7, 10, 40 << 20)]:
        assert more.is_more_than(before)
