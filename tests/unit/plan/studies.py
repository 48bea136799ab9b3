"""Makes plan files and a catalogue for the plan's tests."""

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from tunnelmark.plan.catalogue import Catalogue
from tunnelmark.plan.files import PACKAGED, Files


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class OpenvpnOptions(Strict):
    cipher: Literal["aes-256-gcm", "none"] = "aes-256-gcm"
    port: int = Field(default=1194, gt=0)


class PingOptions(Strict):
    duration: str = "2 s"


class UdpOptions(PingOptions):
    rate: str = "100 Mbit/s"


VPNS = ("direct", "anchor", "wireguard-go", "tinc", "nebula", "yggdrasil")
CATALOGUE = Catalogue(
    vpns=dict.fromkeys(VPNS, Strict) | {"openvpn": OpenvpnOptions},
    workloads={"ping": PingOptions, "tcp": PingOptions, "udp": UdpOptions},
    variants={"anchor-chacha20": ("anchor", {})},
)
FILES = Files((PACKAGED,))

STUDY = """\
[study]
name = "mine"
title = "Mine"
blocks = 2
profiles = ["gigabit"]
topologies = ["pair"]
"""
ARMS = """
[[arm]]
name = "direct"

[[arm]]
name = "direct-again"
same_as = "direct"
"""
WORKLOADS = """
[[workload]]
workload = "ping"
"""


def write(folder: Path, text: str, name: str = "mine.toml") -> str:
    """Puts the text into a file; its path."""
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return str(file)
