"""Shows the progress of `packages install`: a line for each recipe that is done, and how long the others have taken."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from types import TracebackType

from rich.console import Console, Group, RenderableType
from rich.live import Live as Painter
from rich.text import Text

from tunnelmark.packages.install import InstallOutcome
from tunnelmark.packages.recipe import Recipe
from tunnelmark.units import clock

_EVERY = 60.0  # seconds between two lines about a build where there is no terminal
_STYLES = {"ready": "green", "kept": "dim", "failed": "bold red", "impossible": "yellow", "missing": "yellow"}
_WORDS = {"kept": "in place", "impossible": "cannot be built here", "missing": "missing"}


class InstallProgress:
    """Shows the installation of recipes, up to `jobs` of them at once. A terminal has running builds at the bottom."""

    def __init__(self, console: Console, wanted: Iterable[Recipe], jobs: int) -> None:
        self._console = console
        self._jobs = jobs
        self._waiting = {recipe.name: float(recipe.about.takes) for recipe in wanted}
        self._total = len(self._waiting)
        self._done = 0
        self._building: dict[str, tuple[Recipe, float]] = {}
        self._ended = threading.Event()
        self._painter = Painter(get_renderable=self._show, console=console, refresh_per_second=2, transient=True)
        self._teller = threading.Thread(target=self._tell, daemon=True)

    def __enter__(self) -> InstallProgress:
        if self._console.is_terminal:
            self._painter.start()
        else:
            self._teller.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        if self._console.is_terminal:
            self._painter.stop()

    def begin(self, recipe: Recipe) -> None:
        """Show that a build has begun."""
        self._waiting.pop(recipe.name, None)
        self._building[recipe.name] = (recipe, time.monotonic())
        if not self._console.is_terminal:
            self._print(recipe.name, Text(f"begins, takes about {clock(float(recipe.about.takes))} on two idle cores"))

    def end(self, outcome: InstallOutcome) -> None:
        """Print how the installation of a recipe ended."""
        self._waiting.pop(outcome.name, None)
        self._building.pop(outcome.name, None)
        self._done += 1
        said = Text(_WORDS.get(outcome.result, outcome.result), style=_STYLES[outcome.result])
        if outcome.result in ("ready", "failed"):
            said.append(f" after {clock(outcome.seconds)}", style="default")
        if outcome.result == "ready":
            said.append(f", {self._progress()}", style="dim")
        if outcome.message:
            said.append(f": {outcome.message}", style="default")
        self._print(outcome.name, said)
        if outcome.hint:
            self._print("", Text(f"hint: {outcome.hint}"))

    def _print(self, name: str, what: Text) -> None:
        self._console.print(Text.assemble(f"  {name:<18} ", what), soft_wrap=True)

    def _progress(self) -> str:
        """Return how many recipes are done, and about how long the rest will take by the times in the recipes."""
        now = time.monotonic()
        begun = [max(0.0, float(one.about.takes) - (now - since)) for one, since in self._building.copy().values()]
        waiting = sum(self._waiting.copy().values())
        left = max([*begun, (sum(begun) + waiting) / self._jobs])
        return f"{self._done} of {self._total}" + (f", about {clock(left)} left" if left >= 1 else "")

    def _show(self) -> RenderableType:
        now = time.monotonic()
        return Group(
            *(
                Text.assemble(f"  {name:<18} ", (f"building, {clock(now - since)}", "cyan"))
                + Text(f" of about {clock(float(recipe.about.takes))}", style="dim")
                for name, (recipe, since) in self._building.copy().items()
            ),
            Text(f"  {self._progress()}", style="dim"),
        )

    def _tell(self) -> None:
        while not self._ended.wait(_EVERY):
            for name, (_, since) in self._building.copy().items():
                self._print(name, Text(f"building for {clock(time.monotonic() - since)}"))
