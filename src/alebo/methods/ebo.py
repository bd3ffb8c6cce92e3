"""EBO: several Mondrian partitions of the space, an additive process with sampled groups in every leaf, one batch of all.

What differs from Wang et al. 2018, who wanted tens of thousands of evaluations: exact kernels instead of tile coding, a
variance for each group, and no optimum to be given: their acquisition needs the best possible value, which is here
estimated from the process as the expected minimum (the estimator of Wang, Zhou and Jegelka 2016).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import ClassVar, NamedTuple, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .._errors import damaged_note
from .._seeds import derive, generator
from ..goals import Goals
from ..history import History
from ..models._algebra import safe_cholesky, squared_distances
from ..models.additive import AdditiveGP, Groups, fit_additive, minimise_bounds, random_groups
from ..space import Space
from ._embedded import is_repeated
from ._method import Method, Suggestion, Supports, setting
from ._penalised import measured

Array: TypeAlias = NDArray[np.float64]

_LETTERS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_"  # six bits each


@dataclass(frozen=True)
class EBO(Method):
    """An ensemble of partitions, each leaf searched on its own with its own groups; the batch comes from all of them."""

    partitions: int = setting(2, "Mondrian trees at every step")
    leaves: int = setting(4, "of a partition, at most")
    min_leaf: int = setting(40, "evaluations in a leaf, at least")
    group_size: int = setting(3, "parameters in a group, at most")
    moves: int = setting(40, "Gibbs moves in a leaf at every step")
    initial: int = setting(10, "random points first")

    name: ClassVar[str] = "ebo"
    title: ClassVar[str] = "EBO"
    citation: ClassVar[str] = (
        "Wang, Gehring, Kohli, Jegelka 2018, Batched Large-scale Bayesian Optimization in High-dimensional Spaces, AISTATS"
    )
    supports: ClassVar[Supports] = Supports(batches=True)

    def __post_init__(self) -> None:
        self._counts(**{f.name: 1 for f in fields(self)})

    def suggest(self, history: History, space: Space, goals: Goals, q: int, seed: int) -> Sequence[Suggestion]:
        number, D = len(history), space.dimension
        here = derive(seed, "ask", number)
        if len(history.complete) < max(2, min(self.initial, number)) or number < self.initial:
            rng = generator(here, "initial")
            return [Suggestion(rng.uniform(-1.0, 1.0, D), note={"by": "random"}) for _ in range(q)]
        X, y = measured(history, space, goals)
        last = next((t.note["groups"] for t in reversed(history) if "groups" in t.note), None)
        groups = random_groups(D, self.group_size, derive(seed, "groups")) if last is None else read_groups(last, D)
        leaves = [
            Leaf(*box, derive(here, "leaf", tree, i))
            for tree in range(self.partitions)
            for i, box in enumerate(mondrian(X, self.leaves, self.min_leaf, derive(here, "tree", tree)))
        ]
        if len(leaves) == self.partitions:  # no cut anywhere: the trees are equal, one is enough
            leaves = leaves[:1]
        each = max(1, math.ceil(2 * q / len(leaves))) if q > 1 else 1
        proposals = [p for leaf in leaves for p in self._search(leaf, X, y, groups, each)]
        pending = [t.x for t in history.pending]
        out: list[Suggestion] = []
        for p in choose_batch(proposals, pending, q):
            x, by = p.x, "model"
            if is_repeated(x, history) or any(np.array_equal(x, s.x) for s in out):
                x, by = generator(here, "repeated", len(out)).uniform(-1.0, 1.0, D), "random"
            out.append(Suggestion(x, note={"by": by, "groups": write_groups(p.groups, D)}))
        return out

    def _search(self, leaf: Leaf, X: Array, y: Array, groups: Groups, count: int) -> list[Proposal]:
        """Sample the leaf's groups, then propose `count` points of its box, each after believing those before."""
        X, y = X[leaf.members], y[leaf.members]
        gp = fit_additive(X, y, groups, iterations=15)
        groups = gibbs(gp, y, self.group_size, self.moves, leaf.seed)
        found: list[Proposal] = []
        weights = gp.weights
        for k in range(count):
            gp = fit_additive(X, y, groups, lengthscales=(gp.lengthscale,), weights=weights, iterations=20)
            width = self._width(gp, leaf, y)
            top = X[np.argsort(y)[:3]]
            x = minimise_bounds(gp, width, leaf.lower, leaf.upper, derive(leaf.seed, "search", k), extra=top)
            with torch.no_grad():
                mean, variance = gp.posterior(torch.from_numpy(x[None]))
            expected = gp.shift + gp.spread * float(mean[0])
            value = expected - float(width[0]) * gp.spread * math.sqrt(float(variance[0]))
            found.append(Proposal(x, value, groups))
            X, y = np.vstack([X, x]), np.append(y, expected)
        return found

    def _width(self, gp: AdditiveGP, leaf: Leaf, y: Array) -> Tensor:
        """The width of the confidence bound under which aiming at the estimated minimum is the same as the bound."""
        rng = generator(leaf.seed, "estimate")
        box = leaf.lower + rng.random((200, len(leaf.lower))) * (leaf.upper - leaf.lower)
        with torch.no_grad():
            mean, variance = gp.posterior(torch.from_numpy(box))
        best = (float(y.min()) - gp.shift) / gp.spread
        target = expected_minimum(mean.numpy(), variance.sqrt().numpy(), best)
        width = float(((mean - target) / variance.sqrt()).min().clamp(0.1, 5.0))
        return torch.full((len(gp.groups),), width, dtype=torch.double)


class Leaf(NamedTuple):
    """A box of the partition, the rows of the data inside, and the leaf's own seed."""

    lower: Array
    upper: Array
    members: NDArray[np.int64]
    seed: int


class Proposal(NamedTuple):
    """A leaf's point, its optimistic value (to be minimised) and the groups that led to it."""

    x: Array
    value: float
    groups: Groups


def mondrian(X: Array, leaves: int, least: int, seed: int) -> list[tuple[Array, Array, NDArray[np.int64]]]:
    """A Mondrian partition of the cube: (lower, upper, rows inside) for every leaf, at least `least` rows in each.

    A leaf is cut in a coordinate drawn in proportion to its side, at a uniform place; a cut that leaves too few rows on a
    side is drawn again, a few times.
    """
    rng = generator(seed, "mondrian")
    D = X.shape[1]
    open_: list[tuple[Array, Array, NDArray[np.int64]]] = [(-np.ones(D), np.ones(D), np.arange(len(X)))]
    closed: list[tuple[Array, Array, NDArray[np.int64]]] = []
    while open_ and len(open_) + len(closed) < leaves:
        open_.sort(key=lambda leaf: len(leaf[2]))
        lower, upper, rows = open_.pop()
        for _ in range(20):
            if len(rows) < 2 * least:
                continue
            side = upper - lower
            j = int(rng.choice(D, p=side / side.sum()))
            at = lower[j] + rng.random() * side[j]
            left = X[rows, j] <= at
            if min(left.sum(), (~left).sum()) >= least:
                end, start = upper.copy(), lower.copy()
                end[j] = start[j] = at
                open_ += [(lower, end, rows[left]), (start, upper, rows[~left])]
                break
        else:
            closed.append((lower, upper, rows))
    return open_ + closed


def gibbs(gp: AdditiveGP, y: Array, size: int, moves: int, seed: int) -> Groups:
    """Groups after `moves` Gibbs moves: a coordinate at a time is given to one of several groups, or to one of its own,
    with probability proportional to the marginal likelihood.

    A group's variance is the sum of its coordinates' weights, so that a move changes the groups and not the total. Half of
    the coordinates are drawn by weight: those that matter are those whose company matters.
    """
    rng = generator(seed, "gibbs")
    X, n = gp.X, len(gp.X)
    w = np.maximum(gp.weights, 1e-6)
    z = torch.from_numpy((y - gp.shift) / gp.spread)
    groups = [list(g) for g in gp.groups]
    at = {j: g for g, members in enumerate(groups) for j in members}
    precision = 0.5 / gp.lengthscale**2

    def kernel(members: list[int]) -> Tensor:
        if not members:
            return torch.zeros(n, n, dtype=X.dtype)
        r2 = torch.from_numpy(squared_distances(X[:, members].numpy()))
        return float(w[members].sum()) * torch.exp(-precision * r2)

    K = sum((kernel(g) for g in groups), torch.zeros(n, n, dtype=X.dtype))
    K.diagonal().add_(gp.noise)
    D = X.shape[1]
    p = 0.5 / D + 0.5 * w / w.sum()
    for j in rng.choice(D, size=min(moves, D), replace=False, p=p / p.sum()):
        j = int(j)
        old = at[j]
        without = [i for i in groups[old] if i != j]
        base = K - kernel(groups[old]) + kernel(without)
        not_full = [g for g, members in enumerate(groups) if g != old and 0 < len(members) < size]
        weight = np.array([w[groups[g]].sum() for g in not_full])
        count = min(6, len(not_full))
        options: list[int | None] = [old]
        if count:
            chosen = rng.choice(len(not_full), size=count, replace=False, p=weight / weight.sum())
            options += [not_full[int(c)] for c in chosen]
        if without:
            options.append(None)  # a group of its own
        changes = []
        for g in options:
            others = [] if g is None else without if g == old else groups[g]
            changes.append(kernel([*others, j]) - kernel(others))
        stack = base + torch.stack(changes)
        score = _log_likelihoods(stack, z)
        if not np.isfinite(score).any():
            continue
        chance = np.exp(score - score.max())
        pick = int(rng.choice(len(options), p=chance / chance.sum()))
        target = options[pick]
        groups[old] = without
        if target is None:
            groups.append([])
            target = len(groups) - 1
        groups[target] = [*groups[target], j] if target != old else [*without, j]
        at[j] = target
        K = stack[pick].clone()
    return [sorted(g) for g in groups if g]


def _log_likelihoods(K: Tensor, z: Tensor) -> Array:
    """Of z under each covariance, up to a constant; -inf where one is not positive definite.  m x n x n, n -> m"""
    L, info = torch.linalg.cholesky_ex(K)
    fit = torch.linalg.solve_triangular(L, z[:, None].expand(len(L), len(z), 1), upper=False)[..., 0]
    score = -0.5 * fit.square().sum(1) - L.diagonal(dim1=1, dim2=2).log().sum(1)
    found: Array = torch.where(info == 0, score, -torch.inf).nan_to_num(nan=-torch.inf).numpy()
    return found


def expected_minimum(mean: Array, sd: Array, best: float) -> float:
    """E[min] of independent normals and of `best`: best - integral of P(min < w) over w < best (Wang et al. 2016)."""
    from scipy.special import log_ndtr

    low = min(float((mean - 5.0 * sd).min()), best - 1e-9)
    grid = np.linspace(low, best, 200)
    above = np.exp(log_ndtr((mean[None] - grid[:, None]) / sd[None]).sum(axis=1))  # P(all > w)
    return best - float(np.trapezoid(1.0 - above, grid))


def choose_batch(proposals: Sequence[Proposal], pending: Sequence[Array], q: int) -> list[Proposal]:
    """`q` proposals, good and apart: greedily the best value after its spread, plus the log of its variance given the
    points already chosen or pending under a wide kernel (the log determinant of a DPP, one step at a time)."""
    values = np.array([p.value for p in proposals])
    quality = -(values - values.mean()) / (values.std() + 1e-12)
    left = list(range(len(proposals)))
    taken: list[Array] = list(pending)
    D = len(proposals[0].x)
    out: list[Proposal] = []
    while left and len(out) < q:
        score = quality[left]
        if taken:
            T, C = np.stack(taken), np.stack([proposals[i].x for i in left])
            k_tt, k_ct = _wide(T, T, D), _wide(C, T, D)
            L = safe_cholesky(torch.from_numpy(k_tt + 1e-6 * np.eye(len(T))))
            v = torch.linalg.solve_triangular(L, torch.from_numpy(k_ct.T), upper=False).numpy()
            score = score + 0.5 * np.log(np.maximum(1.0 - (v**2).sum(axis=0), 1e-9))
        i = left.pop(int(np.argmax(score)))
        out.append(proposals[i])
        taken.append(proposals[i].x)
    return out


def _wide(A: Array, B: Array, D: int) -> Array:
    k: Array = np.exp(-squared_distances(A, B) / (0.5 * D))
    return k


def write_groups(groups: Groups, D: int) -> str:
    """Groups as a short text for a trial's note: every coordinate's group, two letters each."""
    where = [0] * D
    for g, members in enumerate(groups):
        for j in members:
            where[j] = g
    wide = 2 if len(groups) <= 64**2 else 4
    return f"{wide}:" + "".join("".join(_LETTERS[(g >> (6 * k)) & 63] for k in reversed(range(wide))) for g in where)


def read_groups(text: str, D: int) -> Groups:
    """The groups that `write_groups` wrote."""
    head, _, body = text.partition(":")
    if head not in ("2", "4") or len(body) != int(head) * D or not set(body) <= set(_LETTERS):
        raise damaged_note(f"a group for each of {D} coordinates")
    wide = int(head)
    groups: dict[int, list[int]] = {}
    for j in range(len(body) // wide):
        g = 0
        for c in body[wide * j : wide * (j + 1)]:
            g = 64 * g + _LETTERS.index(c)
        groups.setdefault(g, []).append(j)
    return [groups[g] for g in sorted(groups)]
