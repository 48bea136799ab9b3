"""The driver to start from: `template.py.txt` filled in for a new VPN's name."""

from __future__ import annotations

import keyword
import re
from importlib import resources

from tunnelmark.errors import UsageError
from tunnelmark.plan.fields import NAME_PATTERN

_MODULES = ("base", "scaffold")  # names of this package that are no drivers
_LONGEST = 40  # characters; a name is a column's head in every table


def scaffold(name: str) -> str:
    """A driver's source for a VPN of that name, which runs, type-checks and waits to be filled in.

    UsageError if the name is no good for a study file, a module or a table.
    """
    module = name.replace("-", "_").replace(".", "_")  # as the command names the file
    if not re.fullmatch(NAME_PATTERN, name) or not module.isidentifier() or keyword.iskeyword(module):
        raise UsageError(
            f"{name!r} is no name for a VPN",
            hint="take lower-case letters, digits and dashes, a letter first, such as `my-vpn`",
        )
    if len(name) > _LONGEST:
        raise UsageError(f"{name!r} has {len(name)} characters", hint=f"take at most {_LONGEST}")
    if module in _MODULES:
        raise UsageError(f"{name!r} names a part of tunnelmark itself", hint="choose another name")
    template = resources.files("tunnelmark.vpns").joinpath("template.py.txt").read_text(encoding="utf-8")
    interface = module.replace("_", "")[:14] + "0"  # 15 characters at most: IFNAMSIZ in linux/if.h
    return template.replace("@NAME@", name).replace("@INTERFACE@", interface)
