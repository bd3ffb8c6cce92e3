"""What the search needs of a polytope, against bodies whose answers are known."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.spatial import ConvexHull

from alebo import InputError
from alebo.geometry import Polytope, hesbo, hypersphere, polytope

SEED = st.integers(0, 2**32)


def box(d: int, half: float = 1.0) -> Polytope:
    return Polytope(np.vstack([np.eye(d), -np.eye(d)]), np.full(2 * d, half))


def simplex(d: int) -> Polytope:
    """y >= 0, sum(y) <= 1."""
    return Polytope(np.vstack([-np.eye(d), np.ones((1, d))]), np.append(np.zeros(d), 1.0))


def around(points: np.ndarray) -> Polytope:
    hull = ConvexHull(points)
    return Polytope(hull.equations[:, :-1], -hull.equations[:, -1])


def cross(d: int) -> Polytope:
    """|y|_1 <= 1."""
    A = np.array(list(itertools.product([-1.0, 1.0], repeat=d)))
    return Polytope(A, np.ones(len(A)))


@given(st.integers(1, 8), st.floats(0.1, 10), SEED)
def test_bounds_of_a_rotated_box_are_those_of_its_corners(d: int, half: float, seed: int) -> None:
    d = min(d, 6)
    rng = np.random.default_rng(seed)
    Q, _ = np.linalg.qr(rng.standard_normal((d, d)))
    shift = rng.standard_normal(d)
    b = box(d, half)
    P = Polytope(b.A @ Q.T, b.b + b.A @ Q.T @ shift)  # y = Q z + shift
    corners = half * np.array(list(itertools.product([-1.0, 1.0], repeat=d))) @ Q.T + shift
    low, high = P.bounds
    np.testing.assert_allclose(low, corners.min(axis=0), atol=1e-7)
    np.testing.assert_allclose(high, corners.max(axis=0), atol=1e-7)
    assert P.contains(corners, tolerance=1e-7).all()
    assert not P.contains(shift + 1.001 * (corners - shift), tolerance=1e-7).any()
    np.testing.assert_allclose(P.chebyshev[1], half, rtol=1e-6)
    np.testing.assert_allclose(P.slack(P.chebyshev[0]).min(), half, rtol=1e-5)


@given(st.integers(2, 3), st.integers(0, 2**32))
def test_bounds_of_a_hull_are_those_of_its_points(d: int, seed: int) -> None:
    points = np.random.default_rng(seed).standard_normal((12, d))
    P = around(points)
    np.testing.assert_allclose(P.bounds[0], points.min(axis=0), atol=1e-8)
    np.testing.assert_allclose(P.bounds[1], points.max(axis=0), atol=1e-8)
    assert P.contains(points, tolerance=1e-8).all()


def test_bounds_of_simplex_and_cross() -> None:
    for d in (1, 3, 7):
        np.testing.assert_allclose(simplex(d).bounds, [np.zeros(d), np.ones(d)], atol=1e-9)
    np.testing.assert_allclose(cross(4).bounds, [-np.ones(4), np.ones(4)], atol=1e-9)
    # the inscribed ball of a simplex: radius 1 / (d + sqrt(d))
    assert simplex(3).chebyshev[1] == pytest.approx(1 / (3 + np.sqrt(3)))


@given(st.integers(2, 20), st.integers(0, 2**32))
def test_ray_ends_lie_on_the_boundary(d: int, seed: int) -> None:
    P = hypersphere(40, d, seed).domain
    rng = np.random.default_rng(seed)
    Y = P.sample(15, seed, steps=5)
    theta = rng.standard_normal(Y.shape)
    back, ahead = P.ray(Y, theta)
    assert np.all(back <= 0)
    assert np.all(ahead >= 0)
    for t in (back, ahead):
        ends = Y + t[:, None] * theta
        scale = max(1.0, float(np.abs(Y).max()))
        np.testing.assert_allclose(P.slack(ends).min(axis=1), 0.0, atol=1e-8 * scale)
        inner = Y + 0.999 * t[:, None] * theta
        assert P.contains(inner).all()
    flipped = P.ray(Y, -theta)
    np.testing.assert_allclose(flipped[0], -ahead)
    np.testing.assert_allclose(flipped[1], -back)


def test_rays_of_a_box_from_its_wall_and_corner() -> None:
    back, ahead = box(2).ray(
        np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 0.0]]), np.array([[1.0, 0.0], [-1.0, -1.0], [2.0, 0.0]])
    )
    np.testing.assert_allclose(back, [-2.0, 0.0, -0.5], atol=1e-12)
    np.testing.assert_allclose(ahead, [0.0, 2.0, 0.5], atol=1e-12)
    half = Polytope(np.array([[1.0, 0.0]]), np.array([1.0]))  # no wall behind
    back, ahead = half.ray(np.zeros((1, 2)), np.array([[1.0, 0.0]]))
    assert back[0] == -np.inf
    assert ahead[0] == 1.0


@given(st.integers(1, 20), st.integers(20, 200), SEED)
def test_every_sample_is_inside(d: int, D: int, seed: int) -> None:
    P = hypersphere(max(D, d), d, seed).domain
    Y = P.sample(30, seed, steps=10)
    assert Y.shape == (30, d)
    assert P.slack(Y).min() >= -1e-12
    np.testing.assert_array_equal(Y, P.sample(30, seed, steps=10))


def test_pull_inside_moves_only_what_is_outside() -> None:
    P = hypersphere(50, 6, 0).domain
    Y = P.sample(20, 0)
    np.testing.assert_array_equal(P.pull_inside(Y), Y)
    _, ahead = P.ray(Y[:10], Y[:10])
    out = Y.copy()
    out[:10] += (ahead * (1 + 1e-9))[:, None] * Y[:10]
    inside = P.pull_inside(out)
    assert P.slack(inside).min() >= -1e-13
    np.testing.assert_array_equal(inside[10:], Y[10:])
    np.testing.assert_allclose(inside, out, rtol=1e-7)


def test_pull_inside_of_a_polytope_away_from_the_origin() -> None:
    P = Polytope(np.vstack([np.eye(2), -np.eye(2)]), np.array([4.0, 9.0, -2.0, -5.0]))  # [2, 4] x [5, 9]
    out = np.array([[4.0 + 1e-9, 8.0], [3.0, 5.0 - 1e-6], [40.0, 7.0], [2.5, 6.0]])
    inside = P.pull_inside(out)
    assert P.slack(inside).min() >= -1e-12
    np.testing.assert_allclose(inside[:2], out[:2], atol=1e-5)  # rounding errors are moved by about their size
    np.testing.assert_array_equal(inside[3], out[3])
    ends = P.centre + P.ray(P.centre, inside[2] - P.centre)[1] * (inside[2] - P.centre)
    np.testing.assert_allclose(inside[2], ends, rtol=1e-9)  # and by no more than to the wall


# -- very many inequalities: looked at in pairs and in pieces ------------------------------------------------------------


def slices() -> list[Polytope]:
    """With a pair for each parameter, with linear constraints besides, through another point, and with an idle coordinate."""
    E = hypersphere(5000, 5, 0).orthonormal()
    x0 = np.random.default_rng(0).uniform(-0.9, 0.9, 5000)
    return [
        E.domain,
        E.domain.intersect(np.ones((1, 5)), np.array([0.1])),
        E.through(x0).domain,
        hesbo(5000, 3, 1).domain,
    ]


@pytest.mark.parametrize("which", range(4))
def test_many_inequalities_give_what_each_of_them_does(which: int) -> None:
    P = slices()[which]
    assert P.many
    assert P.pairs == 5000
    alone = Polytope(P.A, P.b)  # the same, and nobody knows of pairs
    rng = np.random.default_rng(0)
    Y = P.sample(40, 1, steps=3)
    assert P.slack(Y).min() >= -1e-12
    theta = rng.standard_normal(Y.shape)
    for Q in (P, alone):
        back, ahead = Q.ray(Y, theta)
        expected = Polytope._ends(P.slack(Y), theta @ P.A.T)
        np.testing.assert_allclose([back, ahead], expected, rtol=1e-9)
        one = Q.ray(Y[0], theta)
        np.testing.assert_allclose(one, Polytope._ends(P.slack(Y[0]), theta @ P.A.T), rtol=1e-9)
        out = Y + (ahead * np.where(np.arange(40) % 2, 1.01, 0.9))[:, None] * theta
        np.testing.assert_array_equal(Q.contains(out), np.arange(40) % 2 == 0)
        np.testing.assert_array_equal(Q.contains(out[:4].reshape(2, 2, -1)), [[True, False], [True, False]])
        inside = Q.pull_inside(out)
        assert P.slack(inside).min() >= -1e-12
        np.testing.assert_array_equal(inside[::2], out[::2])
        beyond = Q.centre + P.ray(Q.centre, out[1] - Q.centre)[1] * (out[1] - Q.centre)
        np.testing.assert_allclose(inside[1], beyond, rtol=1e-9)


def test_rows_that_come_in_pairs_are_kept_once() -> None:
    P = slices()[1]
    assert P.sides.Tt.shape == (5, 5001)
    assert np.isinf(P.sides.low).sum() == 1
    assert P.sides.single.Tt.dtype == np.float32


# -- uniformity: every p-value of one family is compared with its share of one percent -----------------------------------


def uniform(p_values: list[float]) -> bool:
    return min(p_values) > 0.01 / len(p_values)


@pytest.mark.parametrize(
    ("D", "d", "many"),
    [(20, 2, False), (100, 2, False), (30, 3, False), (100, 3, False), (100, 2, True), (100, 3, True)],
)
def test_uniform_against_exact_rejection_sampling(D: int, d: int, many: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if many:
        monkeypatch.setattr(polytope, "MANY", 1)
    P = hypersphere(D, d, 3).domain
    low, high = P.bounds
    rng = np.random.default_rng(0)
    draws = rng.uniform(low, high, (40000, d))
    exact = draws[P.contains(draws, tolerance=0.0)][:4000]
    ours = P.sample(4000, 1)
    directions = rng.standard_normal((4, d))
    p = [stats.ks_2samp(exact @ v, ours @ v).pvalue for v in directions]
    p.append(stats.ks_2samp(P.slack(exact).min(axis=1), P.slack(ours).min(axis=1)).pvalue)  # how near the walls
    p.append(stats.ks_2samp(np.linalg.norm(exact, axis=1), np.linalg.norm(ours, axis=1)).pvalue)
    edges = [np.quantile(exact[:, j], [0.25, 0.5, 0.75]) for j in range(d)]
    cells = [np.ravel_multi_index([np.digitize(Y[:, j], edges[j]) for j in range(d)], (4,) * d) for Y in (exact, ours)]
    counts = np.array([np.bincount(c, minlength=4**d) for c in cells])
    p.append(stats.chi2_contingency(counts[:, counts.sum(axis=0) > 10]).pvalue)
    assert uniform(p), p


@pytest.mark.parametrize("d", [2, 10, 20])
def test_uniform_in_a_box(d: int) -> None:
    """Known marginals; the largest |coordinate| to the power d is uniform, too."""
    Y = box(d).sample(3000, 5)
    p = [stats.kstest(Y[:, j], stats.uniform(-1, 2).cdf).pvalue for j in range(d)]
    p.append(stats.kstest(np.abs(Y).max(axis=1) ** d, "uniform").pvalue)
    assert uniform(p), p
    assert np.abs(np.corrcoef(Y.T) - np.eye(d)).max() < 0.1


@pytest.mark.parametrize("d", [2, 6])
def test_uniform_in_a_simplex_whose_centre_is_not_the_origin(d: int) -> None:
    """Marginals of the flat Dirichlet distribution: Beta(1, d)."""
    Y = simplex(d).sample(3000, 7, steps=12 * d)
    p = [stats.kstest(Y[:, j], stats.beta(1, d).cdf).pvalue for j in range(d)]
    p.append(stats.kstest(Y.sum(axis=1) ** d, "uniform").pvalue)
    assert uniform(p), p


@pytest.mark.slow
@pytest.mark.parametrize(("D", "d"), [(100, 12), (1000, 12), (1000, 20)])
def test_three_d_steps_are_as_good_as_many(D: int, d: int) -> None:
    P = hypersphere(D, d, 3).orthonormal().domain
    ours, long = P.sample(2000, 1), P.sample(2000, 2, steps=30 * d)
    p = [stats.ks_2samp(ours[:, j], long[:, j]).pvalue for j in range(d)]
    p.append(stats.ks_2samp(P.slack(ours).min(axis=1), P.slack(long).min(axis=1)).pvalue)
    p.append(stats.ks_2samp(np.linalg.norm(ours, axis=1), np.linalg.norm(long, axis=1)).pvalue)
    assert uniform(p), p


def test_the_check_of_uniformity_can_fail() -> None:
    """Projected ambient draws, which is how the original starts, cluster at the centre: the same check refuses them."""
    e = hypersphere(100, 3, 3)
    P = e.domain
    low, high = P.bounds
    rng = np.random.default_rng(0)
    draws = rng.uniform(low, high, (20000, 3))
    exact = draws[P.contains(draws)][:3000]
    projected = e.down(rng.uniform(-1, 1, (3000, 100)))
    assert stats.ks_2samp(P.slack(exact).min(axis=1), P.slack(projected).min(axis=1)).pvalue < 1e-6


# -- thin, shifted, empty, unbounded ----------------------------------------------------------------------------------------


def test_a_thin_polytope_takes_no_longer() -> None:
    import time

    P = hypersphere(100, 10, 0).domain
    normal = np.ones((1, 10)) / np.sqrt(10)
    thin = P.intersect(np.vstack([normal, -normal]), np.array([0.5 + 1e-6, -0.5]))
    start = time.process_time()
    Y = thin.sample(200, 0)
    assert time.process_time() - start < 5.0
    assert thin.contains(Y).all()
    low, high = thin.bounds
    assert np.all(np.ptp(Y, axis=0) > 0.4 * (high - low))  # it walked the whole slice


def test_an_empty_polytope_says_so() -> None:
    P = box(3).intersect(np.array([[1.0, 0.0, 0.0]]), np.array([-2.0]))
    assert P.empty
    with pytest.raises(InputError, match=r"must have an interior; this one has none\. Loosen"):
        P.sample(3, 0)
    flat = box(2).intersect(np.array([[1.0, 0.0], [-1.0, 0.0]]), np.array([0.5, -0.5]))  # a line has no volume either
    assert flat.empty
    assert not box(3).empty


def test_an_unbounded_polytope_says_so() -> None:
    with pytest.raises(InputError, match="must be bounded"):
        _ = Polytope(np.array([[1.0, 0.0]]), np.array([1.0])).bounds
    with pytest.raises(InputError, match="must be bounded"):
        Polytope(np.array([[1.0, 0.0]]), np.array([1.0])).sample(1, 0)


@pytest.mark.parametrize(
    ("A", "b"),
    [
        (np.ones((2, 2)), np.ones(3)),
        (np.ones(2), np.ones(2)),
        (np.full((1, 1), np.nan), np.ones(1)),
        (np.ones((1, 1)), np.array([np.inf])),
    ],
)
def test_bad_inequalities(A: np.ndarray, b: np.ndarray) -> None:
    with pytest.raises(InputError, match=r"`A y <= b` with finite A"):
        Polytope(A, b)


def test_beyond_8000_inequalities_are_many():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(8001, 2))
    assert [Polytope(A[:m], np.ones(m)).many for m in (7999, 8000, 8001)] == [False, False, True]
