"""`alebo report`: one HTML file, or the same page live while the run goes on."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._errors import AleboError, InputError, StateError
from ._out import err, out, print_json, say
from .study import open_study, writing

if TYPE_CHECKING:
    from ..runner import Study

NAMED = 8  # parameters that Optuna's dashboard shows by name for later trials


def report(where: str, *, output: Path | None, as_json: bool, watch: bool = False, port: int | None = None) -> None:
    """Write the report of a study and print the verdicts; with `watch`, serve the page while the run goes on."""
    from ..report import write_report

    if port is not None and not watch:
        raise InputError("`--port` is of the live page; got it without --watch. Add --watch, or leave it out.")
    study, file = open_study(where, create=False)
    name = file.name if file is not None else study.name
    shown = where if "://" not in where else study.where
    if watch:
        if output is not None or as_json:
            raise InputError("`--watch` shows a page and writes no file; got --output or --json too. Leave one out.")
        with study:
            _watch(study, name, shown, port or 0)
        return
    with study:
        opt, spans = study.optimizer(), study.spans()
        target = output or (file.path.parent if file is not None else Path()) / f"{name}-report.html"
        best = None
        if opt.goals.single:
            with suppress(StateError):  # nothing is feasible yet: the report says so
                best = opt.best()
        with writing(target):
            data = write_report(target, opt, name=name, where=shown, best=best, spans=spans)
        _show_by_name(study, data["importance"])
    if as_json:
        keep = ("name", "counts", "method", "D", "dim", "best", "verdicts", "numbers", "importance", "importance_from")
        print_json({"path": str(target), "bytes": target.stat().st_size, **{k: data[k] for k in keep}})
        return
    show = out()
    if data["empty"]:
        say(show, data["empty"], "yellow")
    for v in data["verdicts"]:
        say(show, f"{v['level']}: {v['text']}", {"warning": "yellow", "good": "green"}.get(v["level"], ""))
    say(show, f"Wrote {target} ({target.stat().st_size / 1e6:.1f} MB). Open it in a browser; it needs no network.")


def _watch(study: Study, name: str, where: str, port: int) -> None:
    """Serve the live page until the command is stopped."""
    from ..report import LivePage

    with LivePage(study.optimizer, name=name, where=where, port=port, spans=study.spans) as page:
        say(out(), f"Live report: {page.address}")
        say(err(), "Only this machine can open it. Stop with Ctrl-C.")
        seen: Any = None
        with suppress(KeyboardInterrupt):
            while True:
                time.sleep(1.0)
                if page.diagnosis is not seen:
                    seen = page.diagnosis
                    _show_by_name(study, [vars(s) for s in seen.importance])


def _show_by_name(study: Study, importance: list[dict[str, Any]]) -> None:
    """Later trials show the parameters that certainly matter by name in Optuna's dashboard."""
    names = [s["name"] for s in importance if s["certain"]][:NAMED]
    if names:
        with suppress(AleboError, OSError):  # a convenience: a report does not fail for it
            study.show_by_name(names)
