"""What a run needs of the kernel is asked before anything is set up."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.console import Console

from tunnelmark import registry
from tunnelmark.cli.measuring import require
from tunnelmark.errors import MissingPart
from tunnelmark.host import kernel_features
from tunnelmark.plan.order import order
from tunnelmark.run.runner import RunContext
from unit.plan.test_sysctls import loaded


def test_an_inner_network_that_this_kernel_has_not_is_refused_with_where_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = dict.fromkeys(kernel_features.NAMES, "") | {"geneve": "Operation not supported"}
    monkeypatch.setattr("tunnelmark.host.kernel_features.found", lambda: found)
    plan = order(loaded(tmp_path, "inner = { geneve = true }\n"))
    context = RunContext(registry.vpns(), registry.workloads(), 0)
    with pytest.raises(MissingPart, match="this kernel has no geneve") as raised:
        require(plan, context, Console())
    assert "--backend vm" in raised.value.hint
