"""Containment: the small program against the paper's, certificates against programs, estimates against closed forms."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import alebo
from alebo.geometry import containment as C
from alebo.geometry import gaussian, hesbo, hypersphere, identity
from alebo.geometry.section import Section, _orthonormal, section

EMBEDDINGS = {"hypersphere": hypersphere, "gaussian": gaussian, "hesbo": hesbo}


def paper_program(embedding, T, z):
    """The program of the paper's supplement, S5: D unknowns x. 0 is feasible, 2 is infeasible."""
    D = embedding.D
    found = linprog(
        np.zeros(D),
        A_eq=np.vstack([T, embedding.A @ embedding.B - np.eye(D)]),
        b_eq=np.concatenate([z, np.zeros(D)]),
        bounds=[(-1.0, 1.0)] * D,
        method="highs",
    )
    assert found.status in (0, 2)
    return found.status == 0


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    kind=st.sampled_from(sorted(EMBEDDINGS)),
    prior=st.sampled_from(sorted(C.PRIORS)),
    D=st.integers(4, 40),
    sizes=st.tuples(st.floats(0, 1), st.floats(0, 1)),
    seed=st.integers(0, 10**6),
)
def test_small_program_agrees_with_the_papers(kind, prior, D, sizes, seed):
    dim = 1 + int(sizes[0] * (D - 1))
    active = 1 + int(sizes[1] * (dim - 1))
    embedding = EMBEDDINGS[kind](D, dim, seed)
    T, z = C.PRIORS[prior](np.random.default_rng(seed), D, active)
    cut = section(embedding.A, embedding.x0, T, z)
    if cut is not None and abs(cut.reach() - 1.0) < 1e-5:
        return  # on the boundary the tolerances of the two programs decide, not the geometry
    assert alebo.contains_optimum(embedding, T, z) == paper_program(embedding, T, z)


def test_certificates_decide_nearly_all_and_never_against_the_program():
    decided = 0
    for i in range(150):
        rng = np.random.default_rng(i)
        A = C.KINDS["hypersphere"](rng, 60, 10)
        cut = section(A, np.zeros(60), *C.axis_aligned(rng, 60, 4))
        verdict = cut._certify()
        decided += verdict is not None
        if verdict is not None:
            assert verdict == (cut.reach() <= 1.0 + 1e-7)
    assert decided >= 140


def test_program_decides_what_has_no_certificate(monkeypatch):
    rng = np.random.default_rng(3)
    cuts = [section(C.KINDS["gaussian"](rng, 50, 9), np.zeros(50), *C.axis_aligned(rng, 50, 4)) for _ in range(40)]
    before = [cut.meets_cube() for cut in cuts]
    monkeypatch.setattr(Section, "_certify", lambda self: None)
    assert [cut.meets_cube() for cut in cuts] == before
    assert 0 < sum(before) < 40


def test_identity_contains_everything():
    rng = np.random.default_rng(0)
    for prior in C.PRIORS.values():
        for active in (1, 3, 12):
            assert alebo.contains_optimum(identity(12), *prior(rng, 12, active))
    corner = np.eye(12)[:4], np.array([1.0, -1.0, 1.0, 1.0])
    assert alebo.contains_optimum(identity(12), *corner)
    assert not alebo.contains_optimum(identity(12), corner[0], 1.001 * corner[1])


def test_centre_is_always_contained_and_its_own_points_are():
    embedding = hypersphere(50, 5, seed=1)
    assert alebo.contains_optimum(embedding, np.eye(50)[:5], np.zeros(5))
    x = embedding.up(embedding.domain.sample(1, seed=0))[0]
    T, _ = C.random_rotation(np.random.default_rng(0), 50, 5)
    assert alebo.contains_optimum(embedding, T, T @ x)


def test_an_embedding_through_another_point():
    x0 = np.random.default_rng(2).uniform(-1, 1, 30)
    embedding = hypersphere(30, 3, seed=0).through(x0)
    assert alebo.contains_optimum(embedding, np.eye(30), x0)  # every parameter matters, and x0 is the optimum
    assert not alebo.contains_optimum(embedding, np.eye(30), -x0)


@pytest.mark.parametrize(("active", "dim"), [(2, 4), (4, 8), (6, 12), (3, 3)])
def test_hesbo_matches_its_closed_form(active, dim):
    p = alebo.containment_probability("hesbo", D=60, active=active, dim=dim, samples=1500, seed=1)
    assert p.exact == pytest.approx(C.hesbo_probability(active, dim))
    assert abs(p.value - p.exact) <= 3 * p.standard_error


def test_spanning_draws_have_the_probability_of_the_packages_embeddings():
    """The estimate draws bare bases for speed; the embeddings that methods use must have the same chance."""
    for kind, make in EMBEDDINGS.items():
        hits = 0
        for i in range(500):
            hits += alebo.contains_optimum(make(40, 6, i), *C.axis_aligned(np.random.default_rng(i), 40, 3))
        p = alebo.containment_probability(kind, D=40, active=3, dim=6, samples=1500, seed=2)
        se = np.hypot(p.standard_error, np.sqrt(hits / 500 * (1 - hits / 500) / 500))
        assert abs(p.value - hits / 500) <= 3.5 * se


def test_probability_grows_with_dim_and_falls_with_active_and_D():
    def value(**cell):
        return alebo.containment_probability("hypersphere", samples=400, seed=0, **cell)

    by_dim = [value(D=60, active=4, dim=dim) for dim in (4, 8, 12, 20)]
    by_active = [value(D=60, active=active, dim=10) for active in (8, 4, 2)]
    by_D = [value(D=D, active=4, dim=10) for D in (400, 40)]
    for chain in (by_dim, by_active, by_D):
        for worse, better in itertools.pairwise(chain):
            noise = np.hypot(worse.standard_error, better.standard_error)
            assert better.value > worse.value - 3 * noise
        assert chain[-1].value > chain[0].value + 0.1


@pytest.mark.parametrize(("kind", "dim", "published"), [("hypersphere", 8, 0.949), ("gaussian", 5, 0.512)])
def test_papers_cells(kind, dim, published):
    p = alebo.containment_probability(kind, D=100, active=2, dim=dim, samples=1000, seed=0)
    assert abs(p.value - published) <= 3 * np.hypot(p.standard_error, np.sqrt(published * (1 - published) / 1000))


def test_rotation_prior():
    T, z = C.random_rotation(np.random.default_rng(0), 30, 4)
    assert pytest.approx(np.eye(4)) == T @ T.T
    assert z.shape == (4,)
    full = alebo.containment_probability("gaussian", D=12, active=3, dim=12, samples=50, prior="rotation")
    assert full.value == full.exact == 1.0


def test_any_prior_and_its_name():
    def at_the_centre(rng, D, active):
        return np.eye(D)[:active], np.zeros(active)

    p = alebo.containment_probability("gaussian", D=30, active=5, dim=5, samples=20, prior=at_the_centre)
    assert p.value == 1.0
    assert p.exact is None
    assert p.prior.endswith("at_the_centre")


def test_reproducible_and_extendable():
    cell = {"D": 50, "active": 3, "dim": 6}
    seen = []
    first = alebo.containment_probability(
        "hypersphere", samples=150, seed=4, progress=lambda *a: seen.append(a), **cell
    )
    assert first == alebo.containment_probability("hypersphere", samples=150, seed=4, **cell)
    assert first != alebo.containment_probability("hypersphere", samples=150, seed=5, **cell)
    assert seen[-1] == (150, 150)
    assert [n for n, _ in seen] == list(range(1, 151))
    more = alebo.containment_probability("hypersphere", samples=200, seed=4, **cell)
    assert first.hits <= more.hits <= first.hits + 50


def test_interval():
    def at(hits, n=1000):
        return C.Containment("hypersphere", 100, 6, 12, "axis", 0, n, hits)

    p = at(471)
    assert p.low == pytest.approx(0.4402, abs=1e-3)
    assert p.high == pytest.approx(0.5020, abs=1e-3)
    assert (at(0).low, at(1000).high) == (0.0, 1.0)
    assert at(0).high == pytest.approx(0.0038, abs=1e-4)
    assert "0.471" in str(p)


def test_sweep_is_kept_and_resumed(tmp_path, monkeypatch):
    path = tmp_path / "new" / "sweep.jsonl"
    cells = [("hesbo", 20, 2, dim) for dim in (2, 3, 4, 5)]
    alebo.containment_sweep(cells[:2], path=path, samples=30)
    with path.open("a") as f:
        f.write('{"kind": "hesbo", "D": 2')  # torn by an interruption
    calls = []
    real = C.containment_probability
    monkeypatch.setattr(C, "containment_probability", lambda kind, **k: calls.append(k["dim"]) or real(kind, **k))
    seen = []
    done = alebo.containment_sweep(cells, path=path, samples=30, progress=lambda i, n, p: seen.append((i, n)))
    assert calls == [4, 5]
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]
    monkeypatch.undo()
    assert done == alebo.containment_sweep(cells, samples=30)
    assert len(path.read_text().splitlines()) == 4
    assert alebo.containment_sweep(cells, path=path, samples=31) != done  # other samples are another cell
    path.write_text("not a sweep\n")
    with pytest.raises(alebo.StudyError, match="one containment cell per line"):
        alebo.containment_sweep(cells, path=path, samples=30)
    with pytest.raises(alebo.InputError, match="by name"):
        alebo.containment_sweep(cells, path=tmp_path / "b", prior=lambda rng, D, d: (np.eye(D)[:d], np.zeros(d)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dim": 21}, "`dim <= D` must hold; got dim=21, D=20"),
        ({"active": 9}, "`active <= dim` must hold; got active=9, dim=8"),
        ({"samples": 0}, "`samples` is a whole number of at least 1; got 0"),
        ({"samples": 2.5}, "whole number"),
        ({"D": 0}, "`D` is a whole number"),
        ({"active": 0}, "`active` is a whole number"),
        ({"kind": "sphere"}, "one of hypersphere, gaussian, hesbo; got 'sphere'"),
        ({"prior": "uniform"}, "one of axis, rotation, or a function"),
        (
            {"prior": lambda rng, D, d: (np.eye(d), np.zeros(d))},
            r"shapes \(2, 20\) for T and \(2,\) for z; got \(2, 2\)",
        ),
        ({"prior": lambda rng, D, d: (np.eye(D)[:d], np.zeros(D))}, r"got \(2, 20\) and \(20,\)"),
        ({"prior": lambda rng, D, d: np.eye(D)[:d]}, "returns the pair"),
        ({"prior": lambda rng, D, d: ("a", "b")}, "arrays of numbers"),
        ({"prior": lambda rng, D, d: (np.eye(D)[:d], np.full(d, np.nan))}, "finite"),
    ],
)
def test_bad_input_is_refused_with_a_message(change, message):
    cell = {"kind": "hypersphere", "D": 20, "active": 2, "dim": 8, "samples": 3} | change
    with pytest.raises(alebo.InputError, match=message):
        alebo.containment_probability(cell.pop("kind"), **cell)


def test_bad_optimum_is_refused_with_a_message():
    with pytest.raises(alebo.InputError, match=r"T and z must have the shapes \(d, 20\)"):
        alebo.contains_optimum(identity(20), np.eye(3), np.zeros(3))


@pytest.mark.parametrize("direction", [(2.0, -1.0), (1.0, -3.0), (5.0, -4.0)])
def test_a_slice_that_touches_a_corner_meets_the_cube_and_one_just_beyond_does_not(direction):
    """Through (1, 1) and past the rest of the square; its point nearest to the centre lies outside."""
    M = np.array(direction)[:, None] / np.linalg.norm(direction)
    p = np.ones(2) - M @ (M.T @ np.ones(2))
    assert np.abs(p).max() > 1.05
    assert Section(p, M).reach() == pytest.approx(1.0, abs=1e-12)
    assert Section(p, M).meets_cube()
    assert Section(0.999999 * p, M).meets_cube()
    assert not Section(1.000001 * p, M).meets_cube()
    assert Section(1.000001 * p, M)._certify() is False
    assert Section(0.99 * p, M)._certify() is True


def test_a_slice_of_one_point_is_inside_up_to_rounding():
    none = np.zeros((3, 0))
    for off, meets in ((0.5e-9, True), (2e-9, False)):
        for sign in (1.0, -1.0):
            cut = Section(np.array([0.0, sign * (1.0 + off), 0.5]), none)
            assert cut.meets_cube() is meets
            assert cut.reach() == 1.0 + off


def test_a_slice_solves_its_equations_or_does_not_exist():
    rng = np.random.default_rng(4)
    A, x0 = rng.normal(size=(20, 4)), rng.uniform(-1, 1, 20)
    A = np.column_stack([A, A[:, 0] + A[:, 1], np.zeros(20)])  # a dependent column and an empty one
    T = rng.normal(size=(2, 20))
    z = rng.normal(size=2)
    cut = section(A, x0, T, z)
    assert cut is not None
    assert cut.directions.shape == (20, 2)  # four directions less two equations
    np.testing.assert_allclose(cut.directions.T @ cut.directions, np.eye(2), atol=1e-12)
    np.testing.assert_allclose(cut.directions.T @ cut.point, 0.0, atol=1e-12)  # nearest to the centre
    for w in rng.normal(size=(5, 2)):
        x = cut.point + cut.directions @ w
        np.testing.assert_allclose(T @ x, z, atol=1e-10)
        y = np.linalg.lstsq(A, x - x0, rcond=None)[0]
        np.testing.assert_allclose(x0 + A @ y, x, atol=1e-10)
    every = np.eye(20)
    assert section(A, x0, every, x0 + rng.normal(size=20)) is None  # twenty equations, four unknowns
    exact = section(A, x0, every, x0 + A[:, 1])
    assert exact is not None
    assert exact.directions.shape == (20, 0)
    np.testing.assert_allclose(exact.point, x0 + A[:, 1], atol=1e-10)


@pytest.mark.parametrize("narrow", [1.0, 1e-2, 1e-5])
def test_columns_become_orthonormal_however_ill_conditioned(narrow):
    rng = np.random.default_rng(0)
    A = rng.normal(size=(30, 5)) @ np.diag([1.0, 1.0, 1.0, 1.0, narrow])
    A[:, 4] += A[:, 0]
    Q = _orthonormal(A)
    np.testing.assert_allclose(Q.T @ Q, np.eye(5), atol=1e-10)
    np.testing.assert_allclose(Q @ (Q.T @ A), A, atol=1e-8)
