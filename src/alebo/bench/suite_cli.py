"""`alebo bench suite`: run the suites, print their tables, write the page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup


class Named(TyperGroup):
    """The command `table` is understood where a suite's name stands in place of a command."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """`real --against bo` -> `table real --against bo`."""
        from . import suite as suites

        known = args and args[0] not in self.commands and args[0] in (*suites.suites(), "all")
        return super().parse_args(ctx, ["table", *args] if known else args)


app = typer.Typer(
    cls=Named,
    help="Named sets of problems: run, table, page, list. A suite's name alone shows its table: alebo bench suite real.",
    no_args_is_help=True,
)

SuiteName = Annotated[str, typer.Argument(help="real, synthetic, all, quick or long.")]
Folder = Annotated[Path, typer.Option(help="Folder of results.")]


@app.command()
def run(
    name: SuiteName,
    methods: Annotated[
        str, typer.Option("--methods", "--method", help="As for `bench run`; cheap ones where left out.")
    ] = "",
    seeds: Annotated[str, typer.Option(help="0-9, or 0,3,7.")] = "",
    jobs: Annotated[int, typer.Option(help="Runs at a time, each on one thread.")] = 2,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for the results; `results`, build/suite-quick for quick, results_200 for long."),
    ] = None,
    retry_failed: Annotated[bool, typer.Option(help="Make failed runs again.")] = False,
) -> None:
    """Make the runs of a suite that are not stored yet; an interrupted sweep continues.

    A stored run counts if its method has the same settings and it has as many evaluations or more; shorter ones are left out and named.
    """
    from . import experiment
    from . import suite as suites
    from ._progress import stoppable
    from .labels import labels

    chosen = suites.suite(name)
    folder = out or Path(chosen.folder)
    experiment.check_folder(folder)
    wanted = experiment.seeds(seeds or ("0-2" if name == "quick" else "0-9"))
    with stoppable():
        plan = suites.plan(chosen, labels(methods or suites.METHODS), wanted, folder, retry_failed=retry_failed)
        tasks, short = experiment.without_short(plan.tasks)
        for message in (*plan.refused, *short):
            typer.echo(f"left out: {message}", err=True)
        for message in plan.broken:
            typer.echo(f"failed: {message}", err=True)
        tally = experiment.run(tasks, jobs=jobs, retry_failed=retry_failed)
    tally.failed += plan.lost
    typer.echo(f"{tally.words}: {folder}.{tally.hint} Table: alebo bench suite table {name} --folder {folder}")
    if tally.failed:
        raise typer.Exit(1)


@app.command()
def table(
    name: SuiteName = "all",
    folder: Annotated[Path | None, typer.Option(help="Folder of results.")] = None,
    methods: Annotated[
        str,
        typer.Option(
            "--methods", "--method", help="Labels, comma-separated; those that share most problems where left out."
        ),
    ] = "",
    against: Annotated[str, typer.Option(help="Wins and losses against this method; `alebo` where it has runs.")] = "",
    format: Annotated[str, typer.Option(help="terminal, markdown or json.")] = "terminal",
    picture: Annotated[
        Path | None, typer.Option(help="Also draw the profiles into this file: .png, .svg or .pdf.")
    ] = None,
) -> None:
    """Average ranks with intervals, mean normalised regret, wins and losses, and the values of every problem."""
    from alebo import InputError

    from . import suite_page
    from .results import load
    from .standings import standings
    from .suite import how, suite

    if format not in ("terminal", "markdown", "json"):
        raise InputError(f"A suite's table is terminal, markdown or json; got {format!r}.")
    chosen = suite(name)
    if picture is not None:
        suite_page.check_picture(picture)
    make = how(chosen, folder)
    results = load(folder or Path(chosen.folder), make=make)
    made = standings(results, chosen, [m.strip() for m in methods.split(",") if m.strip()], make=make)
    rival = against or ("alebo" if "alebo" in made.labels else None)
    if picture is not None:
        suite_page.draw(made, picture)
    if format == "terminal":
        suite_page.terminal(made, rival)
    elif format == "markdown":
        typer.echo(suite_page.markdown(made, rival))
    else:
        typer.echo(suite_page.json_text(made, rival))


@app.command()
def page(
    page: Annotated[Path, typer.Argument(help="The page whose marked parts are rewritten.")] = Path("docs/choosing.md"),
    folder: Folder = Path("results"),
) -> None:
    """Rewrite the tables and pictures of docs/choosing.md from results; nothing is run.

    A suite with a folder of its own (quick, long) is read from the one of that name beside `--folder`; where it is not there
    its part of the page stays as it is.
    """
    from .page import refresh

    for message in refresh(page, folder, page.parent / "img"):
        typer.echo(f"nothing to show yet: {message}", err=True)


@app.command("list")
def show() -> None:
    """The suites and their problems."""
    from .suite import suites

    for made in suites().values():
        typer.echo(f"{made.name}: {made.title}")
        for e in made.entries:
            typer.echo(
                f"  {e.name}: D={e.D}, {e.goal}, {e.budget} evaluations of {e.seconds} s; {e.source}; {e.licence}"
            )
