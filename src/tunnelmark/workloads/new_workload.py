"""The workload to start from: `template.py.txt` filled in for a new workload's name."""

from __future__ import annotations

from importlib import resources

from tunnelmark.plan.new_files import module_name

_MODULES = ("base", "new_workload")  # names of this package that are not workloads


def scaffold(name: str) -> tuple[str, str]:
    """The module's name and its source for a workload of that name, which runs and waits to be changed.

    UsageError if the name cannot be used for a study file, a module or a table.
    """
    module = module_name("workload", name, _MODULES)
    template = resources.files("tunnelmark.workloads").joinpath("template.py.txt").read_text(encoding="utf-8")
    return module, template.replace("@NAME@", name)
