"""`alebo report`: one HTML file."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from .._errors import StateError
from ._out import out, print_json, say
from .study import open_study


def report(where: str, *, output: Path | None, as_json: bool) -> None:
    """Write the report of a study and print the verdicts."""
    from ..report import write_report

    study, file = open_study(where, create=False)
    with study:
        opt = study.optimizer()
    name = file.name if file is not None else study.name
    target = output or (file.path.parent if file is not None else Path()) / f"{name}-report.html"
    best = None
    if opt.goals.single:
        with suppress(StateError):  # nothing is feasible yet: the report says so
            best = opt.best()
    data = write_report(
        target,
        opt.history,
        opt.space,
        opt.goals,
        method=opt.method,
        seed=opt.seed,
        name=name,
        where=where if "://" not in where else study.where,
        best=best,
    )
    if as_json:
        keep = ("name", "counts", "method", "D", "dim", "best", "verdicts", "numbers", "importance")
        print_json({"path": str(target), "bytes": target.stat().st_size, **{k: data[k] for k in keep}})
        return
    show = out()
    for v in data["verdicts"]:
        say(show, f"{v['level']}: {v['text']}", {"warning": "yellow", "good": "green"}.get(v["level"], ""))
    say(show, f"Wrote {target} ({target.stat().st_size / 1e6:.1f} MB). Open it in a browser; it needs no network.")
