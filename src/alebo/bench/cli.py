"""`alebo bench`: the experiments on the command line. Also `python -m alebo.bench`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .suite_cli import app as suite_app

app = typer.Typer(
    help="The paper's experiments: run, table, figure.", no_args_is_help=True, pretty_exceptions_enable=False
)

app.add_typer(suite_app, name="suite")


@app.callback()
def _group() -> None:
    """The paper's experiments: run, table, figure."""


@app.command()
def run(
    problem: Annotated[
        str,
        typer.Option(
            help="Problems, comma-separated: branin-100,gramacy-100 or module:factory; `paper` for the paper's five."
        ),
    ],
    method: Annotated[str, typer.Option(help="Methods: alebo,hesbo-2d or label=name(setting=value) or module:Class.")],
    seeds: Annotated[str, typer.Option(help="0-49, or 0,3,7.")] = "0-9",
    jobs: Annotated[int, typer.Option(help="Runs at a time, each on one thread.")] = 1,
    out: Annotated[Path, typer.Option(help="Folder for the results, a file for each problem and method.")] = Path(
        "results"
    ),
    budget: Annotated[int | None, typer.Option(help="Evaluations a run; the problem's own where left out.")] = None,
    retry_failed: Annotated[bool, typer.Option(help="Make failed runs again.")] = False,
) -> None:
    """Make every (problem, method, seed) once; what is present is skipped, so an interrupted sweep continues.

    A stored run counts if its method has the same settings and it has as many evaluations or more; where another run is in its place
    nothing is run.
    """
    from . import experiment
    from ._progress import stoppable
    from .labels import labels
    from .problems import PAPER

    names = [
        n.strip() for part in problem.split(",") for n in (PAPER if part.strip() == "paper" else [part]) if n.strip()
    ]
    refused: list[str] = []
    with stoppable():
        tasks = experiment.plan(names, labels(method), experiment.seeds(seeds), out, budget=budget, refused=refused)
        for message in refused:
            typer.echo(f"left out: {message}", err=True)
        tally = experiment.run(tasks, jobs=jobs, retry_failed=retry_failed)
    typer.echo(f"{tally.words}: {out}{'.' if tally.hint else ''}{tally.hint}")
    if tally.failed:
        raise typer.Exit(1)


@app.command()
def table(
    folder: Annotated[Path, typer.Argument(help="Folder that `bench run` wrote.")],
    problem: Annotated[str, typer.Option(help="Only these, comma-separated.")] = "",
    method: Annotated[str, typer.Option(help="Only these labels, comma-separated.")] = "",
    against: Annotated[str | None, typer.Option(help="Compare every method with this one, seed by seed.")] = None,
    format: Annotated[str, typer.Option(help="terminal, markdown, csv or json.")] = "terminal",
    json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
    mixed: Annotated[bool, typer.Option(help="Allow runs of different versions or settings in one table.")] = False,
) -> None:
    """Mean, spread, regret, seconds, ranks and paired comparisons, beside the paper's numbers."""
    from alebo import InputError

    from . import tables
    from .results import load

    if json and format not in ("terminal", "json"):
        raise InputError(f"One format a table; got --json and --format {format}. Leave one out.")
    format = "json" if json else format
    if format not in ("terminal", "markdown", "csv", "json"):
        raise InputError(f"A table's format is terminal, markdown, csv or json; got {format!r}.")
    if against is not None and format in ("csv", "json"):
        raise InputError(
            f"Comparisons (--against) are in terminal and markdown tables; got --against {against} with {format}. "
            "Leave out --against, or take --format markdown."
        )
    results = load(folder).only(_names(problem), _names(method))
    if not results.runs:
        raise InputError(f"A table needs runs; {folder} holds none. {' '.join(tables.foreign(results))}")
    if not mixed:
        results.check_unmixed()
    if format == "terminal":
        tables.terminal(results, against=against)
    elif format == "markdown":
        typer.echo(tables.markdown(results, against=against), nl=False)
    else:
        text = f"{tables.json_text(results)}\n" if format == "json" else tables.csv_text(results)
        typer.echo(text, nl=False)
        for note in tables.foreign(results):
            typer.echo(note, err=True)  # the rows stay rows


@app.command()
def figure(
    name: Annotated[str, typer.Argument(help="fig1, fig5, s8, ...; `all` for every one, `list` for their names.")],
    folder: Annotated[Path, typer.Argument(help="Folder of results.")] = Path("results"),
    out: Annotated[Path, typer.Option(help="Folder for the pictures and captions.")] = Path("docs/img"),
    compute: Annotated[bool, typer.Option(help="First make the numbers of a figure that has its own.")] = False,
) -> None:
    """Draw a figure of the paper from results, with a caption that says whether it agrees."""
    from . import figures

    if name == "list":
        typer.echo("\n".join(figures.names()))
        return
    for each in figures.names() if name == "all" else [name]:
        if compute:
            typer.echo(f"stored: {figures.compute(each, folder)}")
        path, caption = figures.figure(each, folder, out)
        typer.echo(f"{path}: {caption}")


@app.command()
def quick(
    out: Annotated[Path, typer.Option(help="Folder for the results.")] = Path("build/bench-quick"),
    jobs: Annotated[int, typer.Option(help="Runs at a time, each on one thread.")] = 2,
    seeds: Annotated[int, typer.Option(help="Runs of each method.")] = 5,
) -> None:
    """The main comparison in small, in about five minutes; the full one is docs/reproduction.md."""
    from .quick import quick as main_comparison

    seconds = main_comparison(out, jobs=jobs, seeds=range(seeds))
    typer.echo(f"{seconds:.0f} seconds, {seeds} seeds: enough to see the order, not to publish it. Results: {out}")


@app.command()
def page(
    page: Annotated[Path, typer.Argument(help="The page whose marked parts are rewritten.")] = Path(
        "docs/reproduction.md"
    ),
    folder: Annotated[Path, typer.Option(help="Folder of results.")] = Path("results"),
) -> None:
    """Rewrite the tables, pictures and captions of docs/reproduction.md from results; nothing is run."""
    from .page import refresh

    for message in refresh(page, folder, page.parent / "img"):
        typer.echo(f"nothing to show yet: {message}", err=True)


@app.command()
def problems(json: Annotated[bool, typer.Option("--json", help="As a JSON list.")] = False) -> None:
    """The problems by name."""
    from json import dumps

    from .problems import PROBLEMS

    typer.echo(dumps(list(PROBLEMS)) if json else "\n".join(PROBLEMS))


def _names(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def main() -> None:
    """Run the app; a wrong input is a short message, not a traceback."""
    import sys

    from alebo import AleboError

    try:
        app(prog_name="python -m alebo.bench")
    except AleboError as error:
        print(error, file=sys.stderr)
        raise SystemExit(2) from None


if __name__ == "__main__":
    main()
