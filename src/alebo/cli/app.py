"""The commands and their help; each body lives in a neighbour and is imported when its command is called."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from .._errors import AleboError, InputError
from .._urls import redact
from ._out import Json, err, print_json, say

app = typer.Typer(
    name="alebo",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Good settings for expensive functions of 20 to 1000 and more parameters.\n\n"
    "First look: alebo demo.  Your own program: alebo new, then alebo run study.toml.",
)


def main(argv: list[str] | None = None) -> None:
    """The entry point: errors become one message on stderr (or a JSON document) and an exit code."""
    args = sys.argv[1:] if argv is None else argv
    try:
        app(args=args, prog_name="alebo")
    except AleboError as error:
        if "--json" in args:
            print_json({"error": redact(str(error)), "type": type(error).__name__})
        say(err(), f"Error: {error}", "red")
        sys.exit(2 if isinstance(error, InputError) else 1)
    except BrokenPipeError:
        sys.exit(1)


@contextmanager
def _stoppable(words: str) -> Iterator[None]:
    """Ctrl-C ends a command with a message (the runner's own where it has one), not with a traceback."""
    try:
        yield
    except KeyboardInterrupt as stop:
        say(err(), str(stop) or words)
        raise typer.Exit(130) from None


def _version(show: bool) -> None:
    if show:
        from .. import __version__

        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


@app.command()
def demo(
    problem: Annotated[
        str, typer.Argument(help="branin (100 parameters, 2 matter) or hexapod (a walking robot).")
    ] = "branin",
    budget: Annotated[int | None, typer.Option(help="Evaluations to spend.")] = None,
    seed: Annotated[int, typer.Option(help="Another seed, another run.")] = 0,
    folder: Annotated[Path, typer.Option(help="Where the picture goes.")] = Path("alebo-demo"),
    json_: Json = False,
) -> None:
    """Watch it work: an optimization with live progress, a picture, and what to try next."""
    from .demo import demo as run

    with _stoppable("Stopped. A demo keeps nothing; the next one starts from the beginning."):
        run(problem, budget=budget, seed=seed, folder=folder, as_json=json_)


@app.command()
def new(
    path: Annotated[Path, typer.Argument(help="The file to write.")] = Path("study.toml"),
    param: Annotated[
        list[str],
        typer.Option(
            help="gain=0:1, lr=1e-5:1:log, heat=20:80:step=5, layers=1:12:int, act=relu,tanh, x[100]=0:1; repeatable."
        ),
    ] = [],  # noqa: B006
    minimize: Annotated[list[str], typer.Option(help="Outcome to make small; repeatable.")] = [],  # noqa: B006
    maximize: Annotated[list[str], typer.Option(help="Outcome to make large; repeatable.")] = [],  # noqa: B006
    at_most: Annotated[list[str], typer.Option(help="Constraint such as latency=10; repeatable.")] = [],  # noqa: B006
    at_least: Annotated[list[str], typer.Option(help="Constraint such as yield=0.9; repeatable.")] = [],  # noqa: B006
    command: Annotated[
        str | None, typer.Option(help="What runs one evaluation, such as './simulate {params}'.")
    ] = None,
    python: Annotated[str | None, typer.Option(help="Or a Python function, module:function.")] = None,
    budget: Annotated[int | None, typer.Option(help="Evaluations in all.")] = None,
    method: Annotated[str | None, typer.Option(help="Another method than the default.")] = None,
    seed: Annotated[int, typer.Option(help="Another seed, another run.")] = 0,
    by_hand: Annotated[
        bool, typer.Option("--by-hand", help="No program: measured by hand, with ask and tell.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file.")] = False,
    json_: Json = False,
) -> None:
    """Write a commented study.toml, from flags or from a few questions."""
    from .new import new as run

    run(
        path,
        param=param,
        minimize=minimize,
        maximize=maximize,
        at_most=at_most,
        at_least=at_least,
        command=command,
        python=python,
        budget=budget,
        method=method,
        seed=seed,
        by_hand=by_hand,
        force=force,
        as_json=json_,
    )


@app.command()
def advise(
    params: Annotated[int, typer.Option("--params", "-p", help="How many parameters you have.")],
    budget: Annotated[int, typer.Option("--budget", "-n", help="How many evaluations you can afford.")],
    active: Annotated[list[int], typer.Option(help="How many parameters matter, if you know; repeatable.")] = [],  # noqa: B006
    json_: Json = False,
) -> None:
    """Which embedding size, and how likely it contains an optimum."""
    from .advise import advise as go

    go(params, budget, active=active, as_json=json_)


@app.command()
def methods(
    name: Annotated[str | None, typer.Argument(help="One of them, in full.")] = None,
    json_: Json = False,
) -> None:
    """The methods to choose from: what each takes, its settings, who made it."""
    from .methods import methods as go

    go(name, as_json=json_)


_Study: TypeAlias = Annotated[str, typer.Argument(help="study.toml, or a journal file, or a database address.")]

_LearnFrom: TypeAlias = Annotated[
    list[str], typer.Option("--learn-from", help="An earlier study, a saved optimizer or a CSV file; repeatable.")
]


@app.command()
def run(
    study: _Study = "study.toml",
    budget: Annotated[
        int | None, typer.Option(help="Evaluations in all, those already asked for included. It is kept for later.")
    ] = None,
    workers: Annotated[int | None, typer.Option(help="Evaluations at a time.")] = None,
    ahead: Annotated[int | None, typer.Option(help="Trials that are prepared while all workers are busy.")] = None,
    max_failed: Annotated[
        float | None, typer.Option(help="Share of evaluations that may fail; 0.5 unless study.toml says otherwise.")
    ] = None,
    learn_from: _LearnFrom = [],  # noqa: B006
    log: Annotated[bool, typer.Option("--log", help="Print events where there is no terminal, too.")] = False,
    json_: Json = False,
) -> None:
    """Optimize what study.toml describes; after an interruption the same command goes on."""
    from .run import run as go

    with _stoppable("Stopped. The same command goes on from here."):
        limits: dict[str, Any] = {"budget": budget, "workers": workers, "ahead": ahead, "max_failed": max_failed}
        go(study, **limits, learn_from=learn_from, log=log, as_json=json_)


@app.command()
def ask(
    study: _Study = "study.toml",
    count: Annotated[int | None, typer.Option("--count", "-n", help="How many points; 1 unless given.")] = None,
    pending: Annotated[bool, typer.Option("--pending", help="Show again what was asked and not yet measured.")] = False,
    form: Annotated[str, typer.Option("--format", help="table or csv.")] = "table",
    output: Annotated[
        Path | None, typer.Option(help="Write a sheet (CSV) to fill in, or add to the one there.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the sheet.")] = False,
    semicolon: Annotated[
        bool,
        typer.Option("--semicolon", help="Separate columns by ; and write decimal commas, for such a spreadsheet."),
    ] = False,
    learn_from: _LearnFrom = [],  # noqa: B006
    json_: Json = False,
) -> None:
    """The next points to measure by hand."""
    from .by_hand import ask as go

    go(
        study,
        count=count,
        pending=pending,
        form=form,
        output=output,
        force=force,
        semicolon=semicolon,
        learn_from=learn_from,
        as_json=json_,
    )


@app.command()
def tell(
    study: Annotated[str, typer.Argument(help="study.toml, or a journal file, or a database address.")],
    number: Annotated[int | None, typer.Argument(help="The trial's number.")] = None,
    outcomes: Annotated[
        list[str] | None, typer.Argument(help="loss=0.31 latency=8.2+-0.1; gain=0.41 for a setting really run.")
    ] = None,
    failed: Annotated[bool, typer.Option("--failed", help="The evaluation broke.")] = False,
    reason: Annotated[str | None, typer.Option(help="Why it broke, or why it is corrected.")] = None,
    csv: Annotated[
        Path | None, typer.Option(help="A filled-in sheet of alebo ask --output, or old data without trial numbers.")
    ] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Correct what was recorded; both are kept.")] = False,
    json_: Json = False,
) -> None:
    """Record what was measured."""
    from .by_hand import tell as go

    go(
        study,
        number=number,
        values=outcomes or [],
        failed=failed,
        reason=reason,
        file=csv,
        replace=replace,
        as_json=json_,
    )


@app.command()
def forget(
    study: Annotated[str, typer.Argument(help="study.toml, or a journal file, or a database address.")],
    number: Annotated[int, typer.Argument(help="The trial's number.")],
    reason: Annotated[str | None, typer.Option(help="Why.")] = None,
    json_: Json = False,
) -> None:
    """Withdraw what was recorded for a trial; the record is kept."""
    from .by_hand import forget as go

    go(study, number=number, reason=reason, as_json=json_)


@app.command()
def enqueue(
    study: Annotated[str, typer.Argument(help="study.toml, or a journal file, or a database address.")],
    values: Annotated[list[str] | None, typer.Argument(help="gain=0.5 rate=0.01: every parameter.")] = None,
    csv: Annotated[Path | None, typer.Option(help="A CSV file with a column for every parameter.")] = None,
    json_: Json = False,
) -> None:
    """Queue a point, such as your present settings, to be the next one asked."""
    from .by_hand import enqueue as go

    go(study, values=values or [], file=csv, as_json=json_)


@app.command()
def logs(
    study: Annotated[str, typer.Argument(help="study.toml")],
    number: Annotated[int | None, typer.Argument(help="The trial's number; the last one unless given.")] = None,
    json_: Json = False,
) -> None:
    """What the evaluation of a trial printed."""
    from .study import logs as go

    go(study, number=number, as_json=json_)


@app.command()
def export(
    study: _Study = "study.toml",
    form: Annotated[
        str | None, typer.Option("--format", help="csv, json or parquet; by the file's ending, or csv, unless given.")
    ] = None,
    output: Annotated[Path | None, typer.Option(help="The file; standard output unless given.")] = None,
    json_: Json = False,
) -> None:
    """Every trial with its settings, outcomes and state."""
    from .study import export as go

    go(study, form=form, output=output, as_json=json_)


@app.command()
def best(
    study: _Study = "study.toml",
    everything: Annotated[bool, typer.Option("--all", help="Show every parameter.")] = False,
    output: Annotated[Path | None, typer.Option(help="Write the point (or front) to a .csv or .json file.")] = None,
    json_: Json = False,
) -> None:
    """The best point so far, or the front of several objectives."""
    from .study import best as go

    go(study, everything=everything, output=output, as_json=json_)


@app.command()
def status(study: _Study = "study.toml", json_: Json = False) -> None:
    """How a study stands: counts, best value, what is pending, what failed."""
    from .study import status as go

    go(study, as_json=json_)


@app.command()
def report(
    study: _Study = "study.toml",
    output: Annotated[
        Path | None, typer.Option(help="The HTML file; STUDY-report.html beside the study unless given.")
    ] = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="Show the page live while the run goes on, to this machine only.")
    ] = False,
    port: Annotated[int | None, typer.Option(help="Of the live page; else any free one.", min=0, max=65535)] = None,
    json_: Json = False,
) -> None:
    """One self-contained HTML file: what was found, how good the model is, which parameters matter."""
    from .report import report as go

    go(study, output=output, as_json=json_, watch=watch, port=port)


_PASS_ON = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}


@app.command(add_help_option=False, context_settings=_PASS_ON)
def bench(ctx: typer.Context) -> None:
    """The paper's experiments: run, table, figure (alebo bench --help)."""
    from ..bench.cli import app as bench_app

    bench_app(args=ctx.args, prog_name="alebo bench")
