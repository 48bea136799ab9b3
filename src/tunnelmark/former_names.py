"""Former names of commands, files and variables; they are accepted for one more release. Dicts map former to new names.

After that release this file is deleted, together with the code that uses it, which the type checker then reports.
"""

from __future__ import annotations

COMMANDS = {"peers": "packages", "prove-link": "check-link"}

STUDIES = {"thesis": "mesh-vpns", "offload": "wireguard-go-offloads", "ciphers": "vpncloud-ciphers"}
TOPOLOGIES = {"trio": "lan-3", "nine": "lan-9"}
BACKENDS = {"wire": "emulator"}
LOSSES = {"state4": "four-state"}

EMULATOR_VARIABLE = "TUNNELMARK_WIRE"
PACKAGES_VARIABLE = "TUNNELMARK_PEERS"
PACKAGES_FOLDER = "peers"  # of the folder with the installed programs
PACKAGE_RECORD = "peer.json"
RECIPES_FOLDER = "peers"
RECIPE_TABLE = "[peer]"
