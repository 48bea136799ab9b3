"""Makes the source of a new driver from one of two templates: a full mesh, or a hub with spokes."""

from __future__ import annotations

from importlib import resources
from typing import Literal

from tunnelmark.plan.new_files import module_name
from tunnelmark.vpns.feature_matrix import CRITERIA, REQUIRED, FeatureGroup

_MODULES = ("base", "feature_matrix", "new_driver")  # names of this package that are not drivers
_TEMPLATES = {"wireguard-go": "template.py.txt", "openvpn": "template_hub.py.txt"}

Like = Literal["wireguard-go", "openvpn"]
"""The VPN whose driver a template resembles: a full mesh that commands set up, or clients of one server."""

_ASKED: tuple[FeatureGroup, ...] = ("choosing", "design")
_HOW = {"choosing": "yes, partly or no: the detail", "design": "in a few words"}


def scaffold(name: str, like: Like = "wireguard-go") -> tuple[str, str]:
    """Return the module name and the source of a driver for a new VPN. It runs and type-checks before it is edited.

    Raises UsageError if the name cannot be the name of a study file, a module or a table.
    """
    module = module_name("VPN", name, _MODULES)
    template = resources.files("tunnelmark.vpns").joinpath(_TEMPLATES[like]).read_text(encoding="utf-8")
    interface = module.replace("_", "")[:14] + "0"  # 15 characters at most: IFNAMSIZ in linux/if.h
    return module, template.replace("@NAME@", name).replace("@INTERFACE@", interface)


def facts(name: str) -> str:
    """Return the text of the VPN's file for the feature matrix: each question, and a line to answer it."""
    lines = [
        f"# {name}: what people choose a VPN by, and how it is built. What is left out is `not stated` in `tunnelmark matrix {name}`.",
        "# Take the # away and answer: [value, source, date of your look]; a source may be `measured here, VERSION: how`.",
        f"# The contract suite asks for {', '.join(REQUIRED)}.",
        "",
        "[cells]",
    ]
    for group in _ASKED:
        for criterion in (one for one in CRITERIA if one.group == group):
            lines.append(f"# {criterion.question}")
            lines.append(f'# {criterion.key} = ["{_HOW[group]}", "a document and its section", "2026-01-31"]')
    return "\n".join(lines) + "\n"
