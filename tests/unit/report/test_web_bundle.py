"""The program in the report is what its sources in `web/` make, holds its libraries' licences, and its lock names no host."""

from __future__ import annotations

import json
import re
from hashlib import sha256
from pathlib import Path

from tunnelmark.report import web_page

ROOT = Path(__file__).parents[3]
WEB = ROOT / "web"


def sources_hash() -> str:
    """The same as `web/build.mjs` computes: names and contents, each ended by a zero byte."""
    names = [f"src/{file.relative_to(WEB / 'src').as_posix()}" for file in (WEB / "src").rglob("*.ts")]
    sum_ = sha256()
    for name in sorted([*names, "build.mjs", "package-lock.json", "tsconfig.json"]):
        sum_.update(name.encode() + b"\0" + (WEB / name).read_bytes() + b"\0")
    return sum_.hexdigest()


def test_the_bundle_is_what_these_sources_make():
    assert f"sources {sources_hash()} " in web_page.program().partition("\n")[0], "run scripts/web"


def test_the_bundle_is_small_and_ends_no_script():
    assert len(web_page.program().encode()) < 400_000
    assert not re.search(r"</script|<!--", web_page.program(), re.IGNORECASE)


def test_the_bundle_holds_the_licences_of_what_it_holds():
    said = web_page.program().rpartition("/*! This holds:")[2]
    assert re.search(r"^@observablehq/plot \d", said, re.MULTILINE)
    assert re.search(r"^d3-scale \d", said, re.MULTILINE)
    assert said.count("Permission to use, copy, modify") >= 10


def test_the_lock_of_the_web_packages_names_no_host_and_has_every_hash():
    text = (WEB / "package-lock.json").read_text()
    assert "://" not in text
    lock = json.loads(text)["packages"]
    assert [name for name, one in lock.items() if name and "integrity" not in one] == []


def test_every_web_package_is_explained():
    asked = json.loads((WEB / "package.json").read_text())
    document = (ROOT / "docs" / "dependencies.md").read_text()
    packages = {**asked["dependencies"], **asked["devDependencies"]}
    assert [name for name, version in packages.items() if f"| {name} | {version} |" not in document] == []
