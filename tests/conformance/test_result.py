"""The card of results: known failures, unknown ones, and results of earlier runs."""

import json

import pytest

from tests.conformance import result as results
from tests.conformance.result import SuiteResult, write_card, write_json


@pytest.fixture
def one_known(monkeypatch):
    monkeypatch.setattr(results, "KNOWN_FAILURES", [("suite", "group/*", "no kernel has it")])


def test_a_failure_is_known_only_with_its_reason(one_known):
    result = SuiteResult("suite", "1", failed={"group/1": "x", "other/1": "y"})
    assert result.unknown() == ["other/1"]
    assert SuiteResult("another", "1", failed={"group/1": "x"}).unknown() == ["group/1"]


def test_the_card_keeps_results_of_other_suites(one_known, tmp_path):
    card = tmp_path / "card.md"
    write_card([SuiteResult("a", "1", passed=5, not_applicable={"t": "no users"}),
                SuiteResult("suite", "1", passed=1, failed={"group/1": "x"})], card)
    write_card([SuiteResult("suite", "2", passed=3, failed={"group/2": "x", "z": "broken"})], card)
    text = card.read_text()
    assert text.count("| a | 1 | 5 | 0 | 1 |") == 1
    assert text.count("| suite | 2 | 3 | 2 | 0 |") == 1 and "| suite | 1 |" not in text
    assert "- no users: t\n" in text
    assert "- no kernel has it: group/2\n" in text and "group/1" not in text
    assert "- **unknown** (broken): z\n" in text
    assert text.count("## a\n") == 1 and text.count("## suite\n") == 1


def test_json_lists_unknown_failures(one_known, tmp_path):
    write_json([SuiteResult("suite", "1", failed={"group/1": "x", "z": "y"})], tmp_path / "r")
    assert json.loads((tmp_path / "r").read_text())[0]["unknown"] == ["z"]


def test_a_run_that_verifies_has_a_row_of_its_own(tmp_path):
    card = tmp_path / "card.md"
    write_card([SuiteResult("one", "1", passed=5, not_applicable={"t": "no users"})], card)
    write_card([SuiteResult("one", "1", failed={"group/1": "x"}, not_applicable={"t": "no users"}, verifies=True)], card)
    text = card.read_text()
    assert "| one | 1 | 5 | 0 | 1 |" in text and "| one, verify=read | 1 | 0 | 1 | 1 |" in text
    assert text.count("- no users: t\n") == 1
    assert "\n## one, verify=read\n\nFailed:\n\n- **unknown** (x): group/1\n" in text


def test_a_run_with_every_file_striped_tells_what_is_not_applicable_beside(monkeypatch, tmp_path):
    monkeypatch.setattr(results, "KNOWN_FAILURES", [("one", "a", "known everywhere"),
                                                    ("one, all striped", "b", "no parts have it")])
    striped = SuiteResult("one", "1", failed={"a": "x", "b": "y"}, stripes_all=True, verifies=True,
                          not_applicable={"t": "no users", "group/2": "no lists"})
    assert striped.unknown() == []
    assert SuiteResult("one", "1", failed={"b": "y"}, verifies=True).unknown() == ["b"]
    card = tmp_path / "card.md"
    write_card([striped, SuiteResult("one", "1", not_applicable={"t": "no users"})], card)
    text = card.read_text()
    assert "| one, all striped, verify=read | 1 | 0 | 2 | 2 |" in text
    assert text.count("- no users: t\n") == 1
    assert "\nNot applicable, beside those of one:\n\n- no lists: group/2\n" in text
