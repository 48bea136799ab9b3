"""Puts a kernel's modules in the order in which they are loaded, by its modules.dep(5). Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath

from tunnelmark.errors import MissingPart

Dependencies = Mapping[str, tuple[str, ...]]
"""By path of a module in its kernel's folder: the paths of the modules that it needs."""


def parse(text: str) -> Dependencies:
    """Return the content of a modules.dep, written by kmod or by busybox."""
    found = {}
    for line in text.splitlines():
        path, colon, needs = line.partition(":")
        if colon:
            found[path.strip()] = tuple(needs.split())
    return found


def name(path: str) -> str:
    """Return the name by which a module is loaded: `x_y` for `kernel/net/x-y.ko.xz`."""
    return PurePosixPath(path).name.split(".", 1)[0].replace("-", "_")


def closure(names: Iterable[str], dependencies: Dependencies, builtin: Iterable[str] = ()) -> list[str]:
    """Return the paths of the modules `names` and of all that they need. Each comes once, after those that it needs
    itself.

    `builtin` are paths of modules that the kernel has inside (modules.builtin); they need no loading. The order within
    a line of modules.dep differs between kmod and busybox, so it is not relied on. Raises MissingPart for a module that
    the kernel does not have.
    """
    paths = {name(path): path for path in dependencies}
    inside = {name(path) for path in builtin}
    order: dict[str, None] = {}

    def add(path: str) -> None:
        if path in order:
            return
        for needed in dependencies.get(path, ()):
            add(needed)
        order[path] = None

    for wanted in names:
        wanted = name(wanted)
        if wanted in inside:
            continue
        if wanted not in paths:
            raise MissingPart(
                f"this kernel has no module {wanted}",
                hint="take Debian's linux-image-amd64; its cloud kernel has no 9p, for example",
            )
        add(paths[wanted])
    return list(order)
