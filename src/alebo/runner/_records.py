"""How a study is written: our trials and settings as plain data, and as Optuna's trials and back."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from .._errors import AleboError, StudyError
from .._stored import check_trial_record
from .._text import printable
from ..goals import AtMost, Goals, Minimize, Outcome
from ..history import Span, State, Trial
from ..methods import Method
from ..methods import from_dict as method_from_dict
from ..methods import to_dict as method_to_dict
from ..optimizer import Optimizer
from ..sources import learned_from
from ..space import Float, Space
from ._origins import check_sources as check_sources
from ._origins import origins
from ._waiting import waits

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

FORMAT = 1
AMENDED, COPY = "amended:", "amended-copy:"  # with its number: an attribute of the study that holds a corrected trial
SHOWN = 32  # without an embedding, so many parameters are still shown one by one in Optuna's dashboard


def record_of(trial: Trial) -> dict[str, Any]:
    """A trial as plain data, as it will be after it was written and read."""
    return {**trial.to_dict(), "note": plain(trial.note)}


def read_record(record: Any) -> Trial:
    """The trial of plain data from a storage, which may hold anything."""
    number = record.get("number") if isinstance(record, Mapping) else None
    check_trial_record(f"Trial {number!r:.20} of a stored study", record)
    return Trial.from_dict(record)


def plain(data: dict[str, Any]) -> dict[str, Any]:
    """What it will be after it was written and read: the run that goes on and the one that resumes see the same."""
    try:
        return dict(json.loads(json.dumps(data)))
    except (TypeError, ValueError) as error:
        raise StudyError(
            f"A study holds plain data (numbers, text, lists); this one does not: {error}. Use plain choices for "
            "categories."
        ) from None


def meta_of(opt: Optimizer, name: str) -> dict[str, Any]:
    """What a study is, as plain data: everything but its trials."""
    directions = [1 if isinstance(g, Minimize) else 2 for g in opt.goals.objectives]  # Optuna's numbers
    data = {k: v for k, v in opt.to_dict().items() if k != "trials"}
    data["method"] = _method_data(opt.method)
    return plain({**data, "format": FORMAT, "name": name, "directions": directions})


def learned(sources: Any, opt: Optimizer, where: str, name: str) -> dict[str, Any]:
    """What a new study at this place keeps of its sources, as plain data; nothing where it has none."""
    tasks = learned_from(sources, opt.space, opt.goals, opt.method, place=(where, name))
    if not tasks:
        return {}
    return {"sources": [task.to_dict() for task in tasks], "origins": origins(sources, opt, where)}


def _method_data(method: Method) -> dict[str, Any]:
    """The method's settings; one that is no plain data (a function) is kept by its name, to be compared and passed again."""
    stored: dict[str, Any] = {}
    unstored: dict[str, str] = {}
    for key, value in method_to_dict(method).items():
        try:
            stored[key] = json.loads(json.dumps(value, allow_nan=False))
        except (TypeError, ValueError):
            unstored[key] = _name_of(value)
    return {**stored, "unstored": unstored} if unstored else stored


def _name_of(value: Any) -> str:
    """A name for a value that is no plain data, the same in every process."""
    if callable(value) and hasattr(value, "__qualname__"):
        return f"{getattr(value, '__module__', '')}:{value.__qualname__}"
    text = repr(value)
    return type(value).__qualname__ if " at 0x" in text else f"{type(value).__qualname__} {text}"


def needs_method(meta: Mapping[str, Any]) -> list[str]:
    """The settings of the method that are no plain data, so that it must be passed again."""
    method = meta["method"]
    if "settings" in method:  # as written by alebo 0.1
        return ["all of its settings"]
    return list(method.get("unstored", ()))


def _same_method(had: Any, got: Any) -> bool:
    if isinstance(had, Mapping) and "settings" in had:  # alebo 0.1 kept only the name
        return bool(had["name"] == got["name"] and "unstored" in got)
    if had == got or not isinstance(had, Mapping) or "unstored" in had:
        return bool(had == got)
    try:
        return bool(plain(_method_data(method_from_dict(had))) == got)  # settings as an earlier version wrote them
    except (AleboError, KeyError, TypeError, ValueError):
        return False


def compare(where: str, stored: Mapping[str, Any], meta: Mapping[str, Any]) -> None:
    """Raise a StudyError unless the stored study is the one that was asked for."""
    for key, word in (
        ("space", "space"),
        ("constraints", "space"),
        ("goals", "goals"),
        ("method", "method"),
        ("seed", "seed"),
    ):
        had, got = stored.get(key), meta[key]
        if _same_method(had, got) if key == "method" else had == got:
            continue
        if key == "space" and isinstance(had, Mapping):
            differing = [n for n in {**had, **got} if had.get(n) != got.get(n)]
            had, got = {n: had.get(n) for n in differing[:3]}, {n: got.get(n) for n in differing[:3]}
            if not differing:
                had, got = "another order of names", "this one"
        raise StudyError(
            f"A study keeps its {word}; {where} was begun with {str(had)[:200]}, and got {str(got)[:200]}. Choose "
            "another path "
            f"(or name), or give the {word} it was begun with."
        )
    if list(stored["space"]) != list(meta["space"]):
        raise StudyError(f"A study keeps the order of its parameters; {where} has another one. Give them as they were.")


def shown(trial: Trial, space: Space, names: Sequence[str] = ()) -> tuple[dict[str, Any], dict[str, Any]]:
    """What Optuna shall show as a trial's parameters: embedded coordinates and named parameters; all where they are few."""
    from optuna.distributions import FloatDistribution

    from ..integrations.spaces import to_optuna

    few = trial.y is None and len(space) <= SHOWN
    by_name = [n for n in trial.params if few or n in names]
    # without steps: what was really run need not lie on the grid
    chosen = [replace(p, step=None) if isinstance(p, Float) else p for p in space.parameters if p.name in by_name]
    distributions: dict[str, Any] = dict(to_optuna(Space(chosen))) if chosen else {}
    values = {n: trial.params[n] for n in by_name if n in distributions}
    if trial.y is not None:
        bound = float(np.sqrt(space.dimension))  # the reach of an orthonormal embedding of the cube
        largest = float(np.abs(trial.y).max(initial=0.0))
        if largest > bound:
            bound = float(2.0 ** np.ceil(np.log2(largest)))
        free = {f"y{i}": float(v) for i, v in enumerate(trial.y) if f"y{i}" not in values}
        values |= free
        distributions |= {name: FloatDistribution(-bound, bound) for name in free}
    return values, distributions


def amended_keys(number: int, *, twice: bool) -> list[str]:
    """The attributes of the study that hold this corrected trial."""
    return [f"{prefix}{number}" for prefix in ((AMENDED, COPY) if twice else (AMENDED,))]


def amended(attributes: Mapping[str, Any]) -> dict[int, dict[str, Any]]:
    """The corrected trials by their numbers; of two copies the one with more corrections."""
    found: dict[int, dict[str, Any]] = {}
    for key, record in attributes.items():
        prefix, _, number = key.rpartition(":")
        if f"{prefix}:" in (AMENDED, COPY) and number.isdigit():
            other = found.get(int(number))
            if other is None or len(record.get("earlier", ())) > len(other.get("earlier", ())):
                found[int(number)] = record
    return found


def span_of(frozen: FrozenTrial, trial: Trial) -> Span | None:
    """When and by whom a trial was evaluated; None where no worker claimed it."""
    owner = frozen.user_attrs.get("owner") or {}
    if owner.get("worker") is None or "at" not in owner or waits(frozen):
        return None
    end = frozen.datetime_complete
    if end is not None:
        end = end.astimezone(UTC)  # without a time zone it is local time
    return Span(trial.number, str(owner["worker"]), datetime.fromtimestamp(float(owner["at"]), UTC), end, trial.state)


def constraints_of(trial: Trial, goals: Goals) -> dict[str, float]:
    """Optuna's view of the constraints: feasible at zero and below."""
    kinds = {g: "<=" if isinstance(g, AtMost) else ">=" for g in goals.constraints}
    return {
        f"{g.outcome} {kinds[g]} {g.bound:g}": float(v)
        for g, v in zip(goals.constraints, goals.violations(trial.outcomes), strict=True)
    }


def check_owner(owner: Any) -> None:
    """Refuse an owner of a trial that is not `{"worker": name or null, "attempt": number, ...}`."""
    if not isinstance(owner, Mapping) or not isinstance(owner.get("worker"), str | None):
        raise TypeError(f"the owner of a trial is an object with the name of a worker; got {owner!r:.60}")
    if not isinstance(owner.get("attempt", 0), int):
        raise TypeError(f"the attempt of a trial is a whole number; got {owner!r:.60}")


def trial_of(frozen: FrozenTrial, space: Space, goals: Goals) -> Trial:
    """Our trial from Optuna's. The copy written with the outcome comes first; a missing state is inferred."""
    trial = _trial_of(frozen, space, goals)
    return trial if trial.reason is None else replace(trial, reason=printable(trial.reason))


def _trial_of(frozen: FrozenTrial, space: Space, goals: Goals) -> Trial:
    from optuna.trial import TrialState

    attrs = frozen.user_attrs
    if "told" in attrs:
        told = attrs["told"]
        params = told["params"] if "params" in told else space.decode(told["x"])
        return read_record({**told, "params": params, "number": frozen.number})
    if "trial" not in attrs or "params" not in attrs:
        return Trial(
            frozen.number,
            {},
            np.zeros(space.dimension),
            state=State.FAILED,
            asked=False,
            reason="not written by alebo, or damaged",
        )
    trial = read_record({**attrs["trial"], "params": attrs["params"], "number": frozen.number})
    if "outcomes" in attrs:
        outcomes = {k: Outcome(float(m), None if s is None else float(s)) for k, (m, s) in attrs["outcomes"].items()}
        return replace(trial, outcomes=outcomes, state=State.COMPLETE)
    if frozen.state is TrialState.COMPLETE and frozen.values is not None:  # its outcomes were damaged; values remain
        known = {g.outcome: Outcome(float(v)) for g, v in zip(goals.objectives, frozen.values, strict=True)}
        if set(known) == set(goals.outcomes):
            return replace(trial, outcomes=known, state=State.COMPLETE)
    if "reason" in attrs or frozen.state.is_finished():
        return replace(trial, state=State.FAILED, reason=attrs.get("reason", "given up"))
    return trial
