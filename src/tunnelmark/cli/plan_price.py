"""The command `plan price`: how long a study takes on rented machines, and what that costs, before any is rented."""

from __future__ import annotations

from math import ceil, isfinite

import click

from tunnelmark import registry
from tunnelmark.cli import output, param_types
from tunnelmark.cli.progress import estimate
from tunnelmark.cli.run_options import LengthOptions, length, of_length
from tunnelmark.errors import UsageError
from tunnelmark.plan.order import order
from tunnelmark.record import environment
from tunnelmark.run.runner import RunContext
from tunnelmark.units import Duration, clock

NOT_IN_IT = (
    "The price of an hour is the one that you stated: check it before use. Disks, addresses, traffic and taxes are not in it,\n"
    "nor what a run repeats, waits for and measures besides: rent for longer than that."
)


@click.command("price")
@click.argument("study", type=param_types.STUDY)
@click.option(
    "--per-hour",
    type=click.FloatRange(min=0, min_open=True),
    required=True,
    help="What one machine costs an hour, by a list price that you looked up.",
)
@click.option("--currency", default="", help="The currency of that price, for what is printed.")
@click.option("--machines", type=click.IntRange(min=1), default=3, show_default=True, help="Machines that are rented.")
@click.option(
    "--set-up", "set_up", metavar="TIME", default="1 h", show_default=True, help="Time until the study begins there."
)
@click.option(
    "--spread",
    is_flag=True,
    help="Each machine measures whole blocks (run --hosts), instead of all together one (run --backend ssh).",
)
@click.option("--json", "json_", is_flag=True, help="Print JSON for programs.")
@length(blocks="Number of blocks, instead of the study's own.", seed="Seed of the trial order; it changes no price.")
def price(
    study: str,
    per_hour: float,
    currency: str,
    machines: int,
    set_up: str,
    spread: bool,
    json_: bool,
    length: LengthOptions,
) -> None:
    """Say how long STUDY takes on rented machines, and what they cost meanwhile.

    No price is known here: state one with --per-hour.
    """
    if not isfinite(per_hour):
        raise UsageError(f"--per-hour {per_hour} is not a price", hint="state what an hour costs, such as 0.20")
    loaded = of_length(study, length)
    context = RunContext(registry.vpns(), registry.workloads(), environment.socket_buffer_limit())
    block = estimate(order(loaded), context) / loaded.blocks
    blocks = loaded.blocks if loaded.enough is None else max(loaded.enough.most, loaded.blocks)
    if loaded.enough is not None and loaded.enough.budget is not None:
        blocks = min(blocks, max(int(loaded.enough.budget / block), loaded.blocks))
    before = _seconds(set_up)
    measuring = block * (ceil(blocks / machines) if spread else blocks)
    hours = ceil((before + measuring) / 36) / 100  # as they are printed, so that the printed price is their product
    cost = machines * hours * per_hour
    if json_:
        output.as_json(
            {
                "study": loaded.name,
                "blocks": blocks,
                "machines": machines,
                "set_up_seconds": before,
                "measuring_seconds": measuring,
                "hours": hours,
                "per_hour": per_hour,
                "price": cost,
                "currency": currency,
            }
        )
        return
    unit = f" {currency}" if currency else ""
    console = output.console()
    most = " at most" if loaded.enough is not None else ""
    how = "shared by the machines" if spread else "by all machines together"
    console.print(f"{loaded.title}: {blocks} blocks{most} of {clock(block)}, {how}", soft_wrap=True)
    console.print(f"  time   {clock(measuring)} of measuring and {clock(before)} of set-up: {hours:.2f} hours")
    console.print(f"  price  {machines} × {hours:.2f} hours × {per_hour:g}{unit} = {cost:.2f}{unit}")
    console.print(f"[dim]{NOT_IN_IT}[/]", soft_wrap=True)


def _seconds(text: str) -> float:
    try:
        return float(Duration.parse(text))
    except ValueError as error:
        raise UsageError(f"--set-up {text}: {error}", hint="such as 40min or 1h") from error
