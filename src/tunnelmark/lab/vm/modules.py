"""Owns the order in which a kernel's modules are loaded, as modules.dep(5) states it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath

from tunnelmark.errors import MissingPart

Dependencies = Mapping[str, tuple[str, ...]]
"""Path of a module in its kernel's folder -> paths of what it needs."""


def parse(text: str) -> Dependencies:
    """Read a modules.dep, whether kmod or busybox wrote it."""
    found = {}
    for line in text.splitlines():
        path, colon, needs = line.partition(":")
        if colon:
            found[path.strip()] = tuple(needs.split())
    return found


def name(path: str) -> str:
    """The name under which a module is asked for: `kernel/net/x-y.ko.xz` is `x_y`."""
    return PurePosixPath(path).name.split(".", 1)[0].replace("-", "_")


def closure(names: Iterable[str], dependencies: Dependencies, builtin: Iterable[str] = ()) -> list[str]:
    """Paths of these modules and all that they need, each once, after what it needs itself.

    `builtin` are paths of modules that the kernel has inside (modules.builtin); they need no loading.
    The order within a line of modules.dep differs between kmod and busybox, so it is not relied on.
    Raises MissingPart for a module that the kernel does not have.
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
