"""Which tests stay together on one worker."""

from __future__ import annotations

from support.sharing import group_of


def test_what_measures_is_one_chain_and_a_mesh_stays_with_its_file():
    assert group_of("tests/e2e/test_run.py::test_a") == group_of("tests/lab/test_matrix.py::test_b[x]") == "measuring"
    assert group_of("tests/lab/test_bounds.py::test_c") == "measuring"
    assert group_of("tests/contract/test_vpns.py::test_d[tinc]") == "tests/contract/test_vpns.py"
    assert group_of("tests/lab/test_links.py::test_e") != group_of("tests/lab/test_links.py::test_f")
