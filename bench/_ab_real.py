"""Real builds for `bench/ab.py --real`: two years of wireguard-go, equal builds, and our anchor with a slowdown put in on purpose.

The anchor is patched as source: a copy of the Rust workspace becomes a git tree with a branch for each slowdown, and `tunnelmark ab` builds
the branches itself, as a user's revisions. The program that the lab uses as its anchor is never touched.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

TOP = Path(__file__).resolve().parents[1]
FORWARD = Path("crates/anchor/src/forward.rs")

_OUTWARD = "            if let Some((to, range)) = self.peers.outward(&mut self.buffer, got as usize) {\n"
_INWARD = "            if let Some(packet) = self.peers.inward(&mut self.buffer[..got], from) {\n"
_WAIT = "            let (tun, socket) = self.wait()?;\n"
_COPIES = "for _ in 0..8 {{ std::hint::black_box({}.to_vec()); }}\n"

PATCHES: Mapping[str, Mapping[str, str]] = {
    # Another comment: what the compiler makes of it is the same.
    "same": {"//! Carries packets in a loop:": "//! Carries packets in turns:"},
    # Each packet is copied eight times more, to new memory, at both ends: whichever of them is the slower one.
    "copies": {
        _OUTWARD: " " * 12 + _COPIES.format("self.buffer[HEADER..HEADER + got as usize]") + _OUTWARD,
        _INWARD: _INWARD + " " * 16 + _COPIES.format("packet"),
    },
    # A tenth of a millisecond (and the kernel's slack, 50 us) before each turn.
    "sleep": {_WAIT: _WAIT + "            std::thread::sleep(std::time::Duration::from_micros(100));\n"},
    # One packet in each turn in place of up to 32, so that each costs a poll.
    "batch": {"const TURN: usize = 32;": "const TURN: usize = 1;"},
}
"""By branch: what is replaced in the anchor's source, and by what."""

BUILD = "CARGO_TARGET_DIR={target} cargo build --release --locked -p anchor && cp {target}/release/tunnelmark-anchor ."
"""One folder for all builds, so that what the anchor needs is compiled once; the program is copied to where it is looked for."""


@dataclass(frozen=True)
class Case:
    """Two builds, and which verdicts on them are right."""

    name: str
    vpn: str
    old: str
    new: str
    expected: tuple[str, ...]
    more: tuple[str, ...] = ()


SILENT = ("no change", "undecided")
"""Neither slower nor faster."""

CASES = (
    Case("2022-2023", "wireguard-go", "wireguard-go-2022", "wireguard-go-2023", ("faster",), ("--workload", "tcp")),
    Case("2023-2022", "wireguard-go", "wireguard-go-2023", "wireguard-go-2022", ("slower",), ("--workload", "tcp")),
    Case("2023-2023", "wireguard-go", "wireguard-go-2023", "wireguard-go-2023", SILENT),
    Case("same", "anchor-chacha20", "git:base", "git:same", SILENT),
    Case("copies", "anchor-chacha20", "git:base", "git:copies", ("slower",)),
    Case("sleep", "anchor-chacha20", "git:base", "git:sleep", ("slower",)),
    # Batches come only under a load that fills a core, which paced datagrams do not.
    Case("batch", "anchor-chacha20", "git:base", "git:batch", ("slower",), ("--workload", "tcp")),
)
REPEATED = ("same", "2023-2023")
"""Cases of equal builds, of which `--times` says how many runs there are, each with a seed of its own."""


def patched(text: str, branch: str) -> str:
    """The anchor's source with one branch's patch; ValueError unless it fits in exactly one place."""
    for before, after in PATCHES[branch].items():
        if text.count(before) != 1:
            raise ValueError(f"the patch {branch} fits in {text.count(before)} places of {FORWARD}, not in one")
        text = text.replace(before, after)
    return text


def tree(folder: Path) -> Path:
    """A git tree of the Rust workspace with the branch `base` and one for each patch; made once."""
    if (folder / ".git").exists():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("Cargo.toml", "Cargo.lock"):
        shutil.copy2(TOP / name, folder / name)
    shutil.copytree(TOP / "crates", folder / "crates", ignore=shutil.ignore_patterns("target"))
    _git(folder, "init", "--quiet", "--initial-branch=base")
    _commit(folder, "base")
    for branch in PATCHES:
        _git(folder, "checkout", "--quiet", "-b", branch, "base")
        file = folder / FORWARD
        file.write_text(patched(file.read_text(), branch))
        _commit(folder, branch)
    _git(folder, "checkout", "--quiet", "base")
    return folder


def _commit(folder: Path, message: str) -> None:
    _git(folder, "add", "--all")
    _git(folder, "commit", "--quiet", "--message", message)


def _git(folder: Path, *arguments: str) -> None:
    named = ("-c", "user.name=bench", "-c", "user.email=bench@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", "-C", str(folder), *named, *arguments], check=True)


def command(case: Case, folder: Path, seed: int, further: Sequence[str]) -> list[str]:
    """The command that compares the two builds of a case."""
    code = "import sys; from tunnelmark.cli import main; sys.exit(main())"
    found = [sys.executable, "-c", code, "ab", case.vpn, "--old", case.old, "--new", case.new]
    if case.old.startswith("git:"):
        source = folder.parent / "anchor-tree"
        target = folder.parent / "target"
        found += ["--source", str(source), "--build", BUILD.format(target=target), "--program", "tunnelmark-anchor"]
    return [*found, "--seed", str(seed), "--out", str(folder), "--json", *case.more, *further]


def real(arguments: Sequence[str]) -> int:
    """Measure the cases that are named (all of them), print what each came to; 1 if one is not what it must be."""
    parser = argparse.ArgumentParser(prog="bench/ab.py --real")
    parser.add_argument(
        "folder", type=Path, help="gets a results folder for each run; those that are there are not measured again"
    )
    parser.add_argument("cases", nargs="*", metavar="case", help=", ".join(case.name for case in CASES))
    parser.add_argument("--times", type=int, default=1, help="runs of each case of equal builds")
    parser.add_argument(
        "--first-seed", type=int, default=1, help="seed of the first of them; each further one has the next"
    )
    parser.add_argument("--counted", action="store_true")
    parser.add_argument("--max-blocks", type=int)
    asked = parser.parse_args(arguments)
    folder = asked.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    if unknown := set(asked.cases) - {case.name for case in CASES}:
        parser.error(f"there is no case {', '.join(sorted(unknown))}")
    further = ["--counted"] if asked.counted else []
    further += [] if asked.max_blocks is None else ["--max-blocks", str(asked.max_blocks)]
    chosen = [case for case in CASES if not asked.cases or case.name in asked.cases]
    if any(case.old.startswith("git:") for case in chosen):
        tree(folder / "anchor-tree")
    failed = 0
    for case in chosen:
        times = asked.times if case.name in REPEATED else 1
        right = sum(_run(case, folder, seed, further) for seed in range(asked.first_seed, asked.first_seed + times))
        # A chance of 5 % is allowed to equal builds alone: of 20 runs one may be wrong.
        good = right >= times - times // 20
        failed += not good
        print(f"{case.name}: {right} of {times} as they must be: {'met' if good else 'NOT MET'}", flush=True)
    return 1 if failed else 0


def _run(case: Case, folder: Path, seed: int, further: Sequence[str]) -> bool:
    """One run of a case; whether it came to what it must."""
    kind = "counted" if "--counted" in further else "wall"
    out = folder / f"{case.name}.{kind}.{seed}"
    answer = Path(f"{out}.json")
    begun = time.monotonic()
    if not answer.exists():
        environment = os.environ | {"PYTHONPATH": str(TOP / "src")}
        done = subprocess.run(
            command(case, out, seed, further), stdout=subprocess.PIPE, text=True, check=False, env=environment
        )
        if done.returncode not in (0, 1, 3):
            print(f"  {case.name} {kind} seed {seed}: ended with {done.returncode}", flush=True)
            return False
        answer.write_text(done.stdout)
    found = json.loads(answer.read_text())
    right = found["outcome"] in case.expected
    took = f", {(time.monotonic() - begun) / 60:.0f} min"
    print(
        f"  {case.name} {kind} seed {seed}: {found['answer']}; {found['blocks']} blocks{took}; "
        f"{'as it must be' if right else f'must be {case.expected}'}",
        flush=True,
    )
    return right
