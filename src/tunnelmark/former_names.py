"""What things were called before, heeded for one release; each table is from the former name to the one that holds now.

When that release has passed, this file goes, and with it what the type checker then finds.
"""

from __future__ import annotations

COMMANDS = {"peers": "packages", "prove-link": "check-link"}

STUDIES = {"thesis": "mesh-vpns", "offload": "wireguard-go-offloads", "ciphers": "vpncloud-ciphers"}
TOPOLOGIES = {"trio": "lan-3", "nine": "lan-9"}
BACKENDS = {"wire": "emulator"}
LOSSES = {"state4": "four-state"}

EMULATOR_VARIABLE = "TUNNELMARK_WIRE"
PACKAGES_VARIABLE = "TUNNELMARK_PEERS"
PACKAGES_FOLDER = "peers"  # of installed programs
PACKAGE_RECORD = "peer.json"
RECIPES_FOLDER = "peers"
RECIPE_TABLE = "[peer]"
