"""Adds to the HTML report its program, built from `web/`, and a policy by which a browser runs only that program."""

from __future__ import annotations

from base64 import b64encode
from functools import cache
from hashlib import sha256
from importlib.resources import files

from markupsafe import Markup

from tunnelmark.analyse.model import Analysis
from tunnelmark.report import web_data


@cache
def program() -> Markup:
    """Return the text of the page's program (JavaScript), for its script element."""
    return Markup((files("tunnelmark.report") / "web" / "report.js").read_text(encoding="utf-8"))  # noqa: S704 # it is our own


@cache
def policy() -> str:
    """Return the Content-Security-Policy of the report page: it loads nothing, and runs only its own script.

    The script is allowed by its SHA-256. Inline styles are allowed, because figures use them. Images may only be
    `data:` and `blob:` URLs that the page makes.
    """
    digest = b64encode(sha256(program().encode()).digest()).decode()
    allowed = {
        "default-src": "'none'",
        "script-src": f"'sha256-{digest}'",
        "style-src": "'unsafe-inline'",
        "img-src": "data: blob:",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    return "; ".join(f"{what} {whence}" for what, whence in allowed.items())


def data(analysis: Analysis) -> Markup:
    """Return the data that the page's program reads, as the text of the script element that holds them."""
    return Markup(web_data.script(analysis))  # noqa: S704 # it holds no `<`
