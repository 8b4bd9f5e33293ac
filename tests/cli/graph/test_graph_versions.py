"""Stored graphs of format version 1 with weights, which are not encoded there: they stay readable."""

import base64
import io
import json
import tarfile

import pytest

from trust.stubs import crc32c

# `lists`, `dual` (-p 2) and `pages` (--page 4K) of EDGES, by the last program that wrote version 1; a tar.xz.
VERSION_1 = (
    "/Td6WFoAAATm1rRGAgAhARwAAAAQz1jM4Mf/A25dADYaSs4grFetmevzzConHlOKUv0lZ0w3PqTF9x2x1AwcVpZN6pG5H4+YZm7i5oeDVms8Vb"
    "uHYIRzq9MraHLI/nM+9zUjmE7QsoOEKHucnNxxHYrcIkOlX5X02c6WM+VPgtk4Cv5n0v11ciW5brfGPX5M0/7kA9FemtMC7zM8WIuAaaZyrjUe"
    "UZia/TGwsPnPe5JrPWObhWmDi6dkDsgq+ILMuRJ8LaoqGrI77P1xCON/mW6/OLAEzeRlrnXd1ddvERf7SzwoSwKPdGET9WRnmRDrCuHgHSQQIR"
    "e6vxQJtN04OBLPMSTMjLH+r2HQW13oa1w175g3lhhooUNBbKmCKnOJMdhwATCeMloYfLRU26gVZjmMYIR2RcFcnBLPRyuwvojqqTo5+MOwXEmc"
    "Pr+kDkPBpZ2p29Rt5zIbWroTIgTGjRE2tawM7rPhEB3ruerqOjclOB0BowZSE5zT9kIIuyU0GpSz0jdjgIVcWAL/GhG873wsLUQq8rtUaGEZ0z"
    "v9CKNMlHJazPaeRRapveaEmJfzGL6LfCOrE3qgpa5l2robMeGFTLCiKw9PSdBrxLH0lc5d3M9w+RNSg+D/fzb8TpJvXMCzlCJiMn0PudQkEJlZ"
    "/8t0Mj1Ts30Zexc6XRIVtqnFIwt4lGumutjUR2uoaVrV0g5g1VaXWYymqoKyyKmMuZOUarTYReuh4Vtj4M9SJi31uNicmkQJpM2dVThdYDdcw0"
    "k79GWfOfHJgSx1oLSoDhdWK2SlnXVCCB14/70/DmBxrUcRy9sqGADsHQ15+1Jblxv4GqDB9vA3yHE2lHCgpybGANacGgyQtbnEwzJy/HT9QGdq"
    "+gTvVMy2JhBXjKwhf7GpNuouqr0w5XLprAFAUTgydOT7pZF0pAUZnMifBIPC7AgCEtsGclLCDO1seMIQwSba4JS3PX9eMJkrpPaSe5Ot1H97yU"
    "8kBQcxSE46GxlQsDda4f0QlmKGygY6L1MVWr37B0wLKiXT/M82CdFgMBER7zwBdGiSmO1/zcUI5ASgeNXwZwOlYX4jdD0eO0tjRusSw8RKVkRW"
    "6WMGZLJh6PRyP9AEcVncHSGITFNipgBr04RPU8fJOE08ZupU4W6nAqedGgL+nBuo/ABwgQRQQNBK6iYsrCOB2zhvXvQeui2FwW37PeL0uj52Im"
    "MAAAAAzMVlchXELRIAAYoHgJADAHtiOfWxxGf7AgAAAAAEWVo="
)
EDGES = "0\t1\t0.5\n1\t3\t2\n2\t2\t0.001\n3\t0\t7.25\n3\t3\t0.5\n"


@pytest.fixture(scope="module")
def old(tmp_path_factory):
    directory = tmp_path_factory.mktemp("version1")
    with tarfile.open(fileobj=io.BytesIO(base64.b64decode(VERSION_1)), mode="r:xz") as graphs:
        graphs.extractall(directory, filter="data")
    return directory


@pytest.mark.parametrize("kind", ["lists", "dual", "pages"])
def test_graphs_of_version_1_give_the_same_edges(graphlane, old, tmp_path, kind):
    graphlane("check", old / kind)
    graphlane("convert", "-w", "--to", "snap", old / kind, tmp_path / "edges")
    lines = (tmp_path / "edges").read_text().splitlines(keepends=True)
    assert "".join(line for line in lines if not line.startswith("#")) == EDGES
    assert json.loads(graphlane("info", "--json", old / kind).stdout)["bits_a_weight"] == 32


@pytest.mark.parametrize("kind", ["lists", "dual", "pages"])
def test_engines_take_weights_of_version_1(graphlane, old, tmp_path, kind):
    distances = {}
    for source, graph in [("old", old / kind), ("new", tmp_path / "new")]:
        if source == "new":
            graphlane("convert", "-w", "--to", kind, old / kind, graph)
            assert json.loads(graphlane("info", "--json", graph).stdout)["bits_a_weight"] < 32
        graphlane("algo", "sssp", "--source", 0, "--out", tmp_path / f"{source}.txt", graph)
        distances[source] = (tmp_path / f"{source}.txt").read_text()
    assert distances["old"] == distances["new"]


def test_grouped_lists_with_weights_of_version_1_are_refused(graphlane, old, tmp_path):
    """The codec reference had another index then, and was in no release."""
    graphlane("convert", "-w", "--to", "dual", "--codec", "reference", old / "dual", tmp_path / "graph")
    header = bytearray((tmp_path / "graph/graph").read_bytes())
    header[8] = 1
    header[64:72] = bytes(8)
    header[508:512] = crc32c(header[:508]).to_bytes(4, "little")
    (tmp_path / "graph/graph").write_bytes(header)
    refused = graphlane("info", tmp_path / "graph", check=False)
    assert refused.returncode == 1
    assert "`graphlane convert -w --to dual --codec reference EDGES GRAPH` makes it again" in refused.stderr
