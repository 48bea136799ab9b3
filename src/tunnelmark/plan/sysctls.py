"""Checks the kernel settings that a study or an arm gives its nodes, and writes them as the kernel reads them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tunnelmark.plan.problems import Location, Problems

_NAME = re.compile(r"net\.(ipv4|ipv6|core|netfilter|mptcp)\.[a-z0-9_]+([./][A-Za-z0-9_.-]+)*")

OF_THE_LAB = {
    "net.ipv4.tcp_congestion_control": "the laboratory sets CUBIC and checks it in the sockets",
    "net.ipv6.conf.all.accept_dad": "addresses of the laboratory are usable at once",
    "net.ipv6.conf.default.accept_dad": "addresses of the laboratory are usable at once",
    "net.ipv6.conf.all.disable_ipv6": "an arm's `underlay` says it",
}
"""The settings that a study may not make, as the laboratory makes them itself, each with the reason."""

OF_THE_MACHINE = (
    "net.core.rmem_max",
    "net.core.wmem_max",
    "net.core.rmem_default",
    "net.core.wmem_default",
    "net.core.netdev_max_backlog",
    "net.core.netdev_budget",
    "net.core.netdev_budget_usecs",
    "net.core.default_qdisc",
    "net.core.dev_weight",
    "net.core.busy_poll",
    "net.core.busy_read",
    "net.ipv4.tcp_mem",
    "net.ipv4.udp_mem",
    "net.ipv4.tcp_max_orphans",
)
"""Settings of the whole machine, not of a network namespace, in every Linux.

Any other setting that this kernel refuses to a network namespace is refused when the lab is made (LabError).
"""


def sysctls_of(table: Mapping[str, object], key: Location, problems: Problems) -> dict[str, str]:
    """Return the settings as texts for the kernel, by name. A setting that is not allowed is left out, and noted.

    A value is a number, a text, or a list of numbers as in `tcp_rmem`. `key`: where the table is in the file.
    """
    made = {}
    for name, value in table.items():
        where = (*key, name)
        if not _NAME.fullmatch(name):
            problems.add(
                where,
                "is not a sysctl of a network",
                "should be as sysctl(8) has it, such as 'net.ipv4.tcp_reordering'",
            )
        elif name in OF_THE_LAB:
            problems.add(where, "is not for a study to set", OF_THE_LAB[name])
        elif name in OF_THE_MACHINE:
            problems.add(
                where,
                "holds for the whole machine, and the laboratory changes nothing of it",
                "set it with sysctl(8) before the run; it is recorded",
            )
        elif (text := _written(value)) is None:
            problems.add(
                where, f"{value!r} cannot be used", "should be a whole number, a text, or a list of whole numbers"
            )
        else:
            made[name] = text
    return made


def _written(value: object) -> str | None:
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str) and value.isprintable():
        return value
    if isinstance(value, list) and value and all(type(one) is int for one in value):
        return " ".join(map(str, value))
    return None
