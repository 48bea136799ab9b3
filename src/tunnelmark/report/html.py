"""Writes the report as one HTML file that needs nothing else: no network, figures inside, links to raw files.

It is complete without its script, too.
"""

from __future__ import annotations

import shlex
from datetime import UTC, datetime
from functools import cache
from urllib.parse import quote

from jinja2 import Environment as Templates
from jinja2 import PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from tunnelmark.analyse.attempts import grade_of
from tunnelmark.analyse.failures import grouped
from tunnelmark.analyse.gates import gates, titled
from tunnelmark.analyse.link import text as linkwords
from tunnelmark.analyse.model import Analysis
from tunnelmark.claims.verdicts import of_run
from tunnelmark.model.stack_kinds import KINDS
from tunnelmark.record.link_check import LinkCheck
from tunnelmark.record.results import TrialRow
from tunnelmark.report import (
    across_html,
    all_answers,
    answers,
    arm_pairs,
    claim_tables,
    costs,
    detectable_differences,
    formatting,
    graded,
    host_tables,
    machine_facts,
    overview,
    paths_found,
    placed,
    queries,
    repetition,
    titles,
    travels,
    web_page,
)
from tunnelmark.report.cautions import cautions
from tunnelmark.report.chart_groups import chart_group
from tunnelmark.report.environment_tables import environment
from tunnelmark.report.feature_tables import features
from tunnelmark.report.figures import grid as grid_figure
from tunnelmark.report.figures import lab, link_over_time
from tunnelmark.report.figures import topology as topology_figure
from tunnelmark.report.findings import findings, phases, time_spent
from tunnelmark.report.flame_graphs import SIDES, flames
from tunnelmark.report.markdown_syntax import code_parts

LISTED = 2000
"""With more attempts than this, the raw data lists only those that are not good, so that the page opens quickly."""


_RATES = frozenset({"rate", "flood_limit"})
"""Options of workloads that may be a share of the link's rate."""


def _prose(text: str) -> Markup:
    """Return the text with pairs of backticks turned into `<code>`; a backtick without its pair stays text."""
    code = Markup("<code>{}</code>")
    return Markup().join(code.format(part) if is_code else part for part, is_code in code_parts(text))


def render(analysis: Analysis) -> str:
    """Return the whole page as HTML. Its links to raw files are relative to the results folder, where the page is."""
    plan = analysis.results.plan
    record = environment(analysis.results.environment)
    verdicts, answered = of_run(analysis), answers.answers(analysis)
    glance_head, glance_rows = answers.at_a_glance(answered)
    started = min((session.started for session in analysis.results.sessions), default=None)
    return template("report.html.j2").render(
        analysis=analysis,
        plan=plan,
        reference=analysis.reference or "direct",
        when=datetime.fromtimestamp(started, UTC).strftime("%-d %B %Y, %H:%M UTC") if started is not None else "",
        across=across_html.section(analysis),
        cautions=cautions(analysis),
        cores=placed.head(analysis),
        ran_on=host_tables.where(analysis.results.environment),
        hosts=host_tables.rows(analysis.results.environment),
        host_head=host_tables.HEAD,
        joined_by=host_tables.joined_by(analysis.results.environment),
        scope=machine_facts.scope(analysis),
        yardsticks=machine_facts.yardsticks(analysis.results),
        yardstick_head=machine_facts.YARDSTICKS,
        gates=gates(analysis),
        titled=titled,
        failures=grouped(analysis.failures),
        twins=_twins(analysis),
        findings=findings(analysis),
        verdicts=verdicts,
        repeats=repetition.repetition(analysis, verdicts) if verdicts else None,
        repetition_head=repetition.HEAD,
        concluded=claim_tables.conclusions(verdicts.claims, verdicts.judged) if verdicts else (),
        claim_tables=claim_tables,
        where=queries.where,
        heading=titles.heading,
        grids=[(grid, grid_figure.picture(grid)) for grid in paths_found.grids(analysis)],
        paths_explained=paths_found.EXPLAINED,
        groups=[chart_group(analysis, heading, settings) for heading, settings in queries.groups(analysis)],
        links=[
            (profile, topology_figure.picture(topology) if topology.routers else lab.link(topology, profile))
            for topology in plan.topologies
            for profile in plan.profiles
        ],
        link_checks=_link_checks(analysis),
        flames=flames(analysis),
        kinds=KINDS,
        sides=SIDES,
        linkwords=linkwords,
        order=lab.order(analysis),
        time=lab.time(analysis.wall),
        ran=overview.ran(analysis),
        arms=overview.arms(analysis),
        time_spent=time_spent(analysis),
        phases=phases(analysis),
        environment=record,
        features=features(analysis.results.environment),
        command=record.command or shlex.join(["tunnelmark", "run", plan.study]),
        files=_files(analysis.results.trials),
        large=len(analysis.results.trials) > LISTED,
        words=formatting,
        explained=costs.explained(analysis),
        option=_option,
        first=_first_packets(analysis),
        worth=graded.summary(analysis),
        causes=graded.causes(analysis),
        by_arm=graded.by_arm(analysis),
        by_arm_head=graded.BY_ARM,
        alone=graded.alone(analysis),
        firm=detectable_differences.firm(analysis),
        firm_head=detectable_differences.HEAD,
        firm_explained=detectable_differences.EXPLAINED,
        label=queries.label,
        described=overview.described,
        legend=formatting.legend(cell.metric for cell in analysis.cells if cell.metric.primary),
        travels=travels,
        bound=travels.tables(analysis),
        arm_pairs=arm_pairs,
        pair_tables=arm_pairs.tables(analysis),
        grade_of=grade_of,
        answers=answered,
        together=all_answers.together(analysis),
        glance_head=glance_head,
        glance_rows=glance_rows,
        glance=answers.GLANCE,
        signs=travels.signs(analysis, [answer.text for condition in answered for answer in condition.answers]),
        rests_on=overview.rests_on(analysis),
        not_shown=overview.not_shown(analysis),
        effects=overview.effects(analysis),
        intervals=overview.has_intervals(analysis),
        policy=web_page.policy(),
        program=web_page.program(),
        data=web_page.data(analysis),
    )


@cache
def template(name: str) -> Template:
    """Return the template of a page. Rendering it raises UndefinedError if a variable that it uses is not given."""
    templates = Templates(
        loader=PackageLoader("tunnelmark.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters["raw_link"] = quote
    templates.filters["prose"] = _prose
    return templates.get_template(name)


def _link_checks(analysis: Analysis) -> list[tuple[str, Markup, tuple[LinkCheck, ...]]]:
    """Return for each link its name, its figure (empty if no probes went through it), and all checks of it."""
    found: dict[tuple[str, str], list[LinkCheck]] = {}
    for look in analysis.results.link_checks:
        found.setdefault((look.profile, look.topology), []).append(look)
    return [
        (f"{profile}, {topology}", link_over_time.link(looks), tuple(looks))
        for (profile, topology), looks in found.items()
    ]


def _twins(analysis: Analysis) -> list[dict[str, str]]:
    rows = []
    for pair in analysis.same.twins:
        metric = queries.metric_of(analysis, pair.comparison)
        rows.append(
            {
                "pair": f"{pair.comparison.arm} / {pair.comparison.against}",
                "metric": titles.title(analysis.results.plan, pair.comparison.setting.workload, metric),
                "where": queries.where(analysis, pair.comparison.setting),
                "effect": formatting.effect(metric, pair.comparison),
                "noise": formatting.size(metric, pair.noise) if pair.noise is not None else "",
                "standing": pair.standing,
            }
        )
    return rows


def _first_packets(analysis: Analysis) -> list[tuple[str, str, str, str]]:
    rows = []
    for arm in analysis.arms:
        first = arm.first_packet
        scale = formatting.scale("s", [first.median] if first else [])
        share = formatting.share(arm.success)
        if arm.success.total:
            share += f" [{100 * arm.success.low:.0f}–{formatting.percent(arm.success.high)}]"
        share += f", {arm.void} void" if arm.void else ""
        rows.append((arm.arm, share, scale.value(first.median) if first else "", scale.spread(first) if first else ""))
    return rows


def _option(name: str, value: object) -> str:
    if isinstance(value, bool):
        return f"{'' if value else 'no '}{name.replace('_', ' ')}"
    text = " ".join(str(item) for item in value) if isinstance(value, (list, tuple)) else str(value)
    of = " of the link's rate" if name in _RATES and text.endswith("%") else ""
    return f"{name.replace('_', ' ')} {text}{of}"


def _files(trials: tuple[TrialRow, ...]) -> dict[int, list[TrialRow]]:
    by_block: dict[int, list[TrialRow]] = {}
    for trial in (row for row in trials if len(trials) <= LISTED or grade_of(row) != "good"):
        by_block.setdefault(trial.block, []).append(trial)
    return by_block
