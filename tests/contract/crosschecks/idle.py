"""A mesh that does nothing: what its nodes are said to send outside, against what the interfaces counted meanwhile."""

from __future__ import annotations

from contract.crosschecks import AGREE, Crosscheck, Seen

_SECONDS = 3.0


def agrees(seen: Seen) -> None:
    for end, node in (("source", seen.ends.source), ("target", seen.ends.target)):
        counted = seen.counted[node]
        said = seen.value(f"wire_sent_{end}") * _SECONDS
        if seen.ends.interfaces[node].startswith("eth"):  # the bare link: the overlay's interface is the underlay's
            inside = counted["tx_bytes"] - seen.header[node]["tx"] * counted["tx_packets"]
            assert abs(said - inside) <= AGREE * inside + 100, f"{said:.0f} said, {inside} counted"
        else:  # whatever passes the overlay by itself is outside as well, and larger there
            assert said >= counted["tx_bytes"] * (1 - AGREE) - counted["tx_packets"] * seen.header[node]["tx"] - 100
        assert 0 <= seen.value(f"cpu_{end}") < 1000, "an idle node takes less than a core"
    assert all(counted["tx_packets"] < 100 for counted in seen.counted.values()), "the overlay was not idle"


CROSSCHECKS = [Crosscheck("idle", agrees, {"duration": f"{_SECONDS:g} s"})]
