"""Which figures the report shows, in which order, with which words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .. import plots
from ..diagnostics import Diagnosis
from ..history import Span
from ..plots._style import Run

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

SLICES = 4  # parameters with a slice of their own
CAPTIONS = {
    "importance": "Share of the slope of the {source} that points along each parameter. Full colour: the parameter matters beyond "
    "chance, with all parameters considered together. Pale: it may be there by chance.",
    "slices": "The model of all parameters along one parameter, the others as in the marked trial, with 95 % intervals.",
    "contour": "The model of all parameters over two of them, the others as in the marked trial. The second button shows how uncertain "
    "it is. Trials are projected onto the plane.",
    "fit": "Each point was predicted by a model that had not seen it; bars are 95 % intervals.",
    "shares": "The dimension of the embedding, and which part of the method made the last 20 proposals.",
    "parallel": "Each line is a feasible trial; the bluer, the better. The thick line is the best.",
    "timeline": "Each bar is the evaluation of one trial.",
}


def figures(run: Run, diagnosis: Diagnosis | None, spans: Sequence[Span]) -> list[dict[str, Any]]:
    """Every figure of the page: its id, title, caption and Plotly's data and layout."""
    first = run.goals.objectives[0].outcome
    out: list[dict[str, Any]] = []

    def add(name: str, title: str, made: Figure, *, part: str = "", kind: str = "", caption: str = "") -> None:
        shown = made.to_plotly_json()
        shown["layout"].pop("template", None)
        plain = {"data": _rounded(shown["data"]), "layout": _rounded(shown["layout"])}
        out.append({"id": name, "title": title, "part": part, "caption": caption, "kind": kind, **plain})

    if run.goals.single:
        add("trace", "Best value after each trial", plots.trace(run))
    else:
        add("front", "Pareto front", plots.front(run), kind="half")
        add("hypervolume", "Hypervolume", plots.hypervolume(run), kind="half")
    for i, outcome in enumerate(dict.fromkeys(c.outcome for c in run.goals.constraints)):
        title = "Constraints" if i == 0 else ""
        add(f"constraint{i}", title, plots.constraint(run, outcome), kind="low")
    if diagnosis is not None:
        _of_models(run, diagnosis, first, add)
    if plots.dimension_data(run.history) is not None or plots.arms_data(run.history) is not None:
        add("shares", "Dimension and shares", plots.shares(run), kind="low", caption=CAPTIONS["shares"])
    if spans:
        add("timeline", "Workers", plots.timeline(spans), caption=CAPTIONS["timeline"])
    return _paired(out)


def _of_models(run: Run, diagnosis: Diagnosis, first: str, add: Any) -> None:
    if diagnosis.importance:
        words = CAPTIONS["importance"].format(source=diagnosis.importance_from)
        title = "Which parameters matter" + ("" if run.goals.single else f" to {first}")
        add("importance", title, plots.importance(run, diagnosis=diagnosis), caption=words)
        wide = plots.parallel(run, diagnosis=diagnosis)
        add("parallel", "Trials along the most important parameters", wide, kind="wide", caption=CAPTIONS["parallel"])
    own = diagnosis.fitted is not None and diagnosis.fitted.embedding is None
    if diagnosis.importance and (diagnosis.sparse is not None or own):
        certain = [s.name for s in diagnosis.importance if s.certain]
        names = (certain or [s.name for s in diagnosis.importance])[:SLICES]
        for i, name in enumerate(names):
            title = f"How {first} depends on single parameters" if i == 0 else ""
            made = plots.slices(run, name, diagnosis=diagnosis)
            add(f"slice{i}", title, made, kind="half", caption=CAPTIONS["slices"] if i == 0 else "")
        pair = [s.name for s in sorted(diagnosis.importance, key=lambda s: (not s.certain, -s.share))[:2]]
        if len(pair) == 2:
            made = plots.contour(run, *pair, diagnosis=diagnosis)
            add("contour", f"How {first} depends on two parameters", made, caption=CAPTIONS["contour"])
    for i, fit in enumerate(diagnosis.fits):
        title = "Predicted against observed" if i == 0 else ""
        made = plots.predicted(run, fit.outcome, diagnosis=diagnosis)
        add(f"fit{i}", title, made, kind="half", caption=CAPTIONS["fit"] if i == 0 else "")


def _paired(out: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A half figure that has no neighbour gets the whole width."""
    alone = False
    for i, f in enumerate(out):
        alone = f["kind"] == "half" and not alone
        if alone and (i + 1 == len(out) or out[i + 1]["kind"] != "half"):
            f["kind"], alone = "", False
    return out


def _rounded(value: Any) -> Any:
    """Numbers to seven digits: more cannot be seen, and a page stays small."""
    if isinstance(value, dict):
        return {k: _rounded(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(v) for v in value]
    if hasattr(value, "tolist"):
        return _rounded(value.tolist())
    return float(f"{value:.7g}") if isinstance(value, float) else value
