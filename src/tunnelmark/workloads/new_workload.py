"""Makes the source of a new workload from `template.py.txt`."""

from __future__ import annotations

from importlib import resources

from tunnelmark.plan.new_files import module_name

_MODULES = ("base", "new_workload")  # names of this package that are not workloads


def scaffold(name: str) -> tuple[str, str]:
    """Return the module name and the source of a new workload, which already runs.

    Raises UsageError if the name cannot be the name of a study file, a module or a table.
    """
    module = module_name("workload", name, _MODULES)
    template = resources.files("tunnelmark.workloads").joinpath("template.py.txt").read_text(encoding="utf-8")
    return module, template.replace("@NAME@", name)
