"""Laws of the embeddings: down undoes up, up stays inside, growing keeps what was known."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from alebo import InputError
from alebo.geometry import Embedding, from_matrix, gaussian, hesbo, hypersphere, identity

KINDS: dict[str, Callable[[int, int, int], Embedding]] = {
    "hypersphere": hypersphere,
    "gaussian": gaussian,
    "hesbo": hesbo,
}
SIZES = st.tuples(st.integers(1, 60), st.integers(1, 20), st.integers(0, 2**32)).map(
    lambda s: (max(s[0], s[1]), s[1], s[2])
)


def embedding(kind: str, D: int, dim: int, seed: int) -> Embedding:
    return KINDS[kind](D, dim, seed)


@given(st.sampled_from(sorted(KINDS)), SIZES, st.booleans())
def test_down_undoes_up_and_up_stays_inside(kind: str, size: tuple[int, int, int], orthonormal: bool) -> None:
    D, dim, seed = size
    e = embedding(kind, D, dim, seed)
    if orthonormal and kind != "hesbo":
        e = e.orthonormal()
    assert (e.D, e.dim) == (D, dim)
    Y = e.domain.sample(20, seed)
    X = e.up(Y)
    assert np.abs(X).max() <= 1.0 + 1e-9
    used = np.any(e.A != 0.0, axis=0)  # a HeSBO coordinate without parameters cannot be read back
    np.testing.assert_allclose(e.down(X)[:, used], Y[:, used], atol=1e-8 * max(1.0, np.abs(Y).max()))
    np.testing.assert_allclose(e.residual(X), 0.0, atol=1e-9)


@pytest.mark.parametrize("kind", sorted(KINDS))
@pytest.mark.parametrize(("D", "dim"), [(100, 4), (1000, 12), (1000, 20)])
def test_the_sizes_of_the_paper_and_beyond(kind: str, D: int, dim: int) -> None:
    e = embedding(kind, D, dim, 1)
    Y = e.domain.sample(60, 2)
    assert e.domain.contains(Y).all()
    X = e.up(Y)
    assert np.abs(X).max() <= 1.0 + 1e-9
    used = np.any(e.A != 0.0, axis=0)
    np.testing.assert_allclose(e.down(X)[:, used], Y[:, used], atol=1e-9 * np.abs(Y).max())


@given(SIZES)
def test_the_map_down_is_the_pseudo_inverse(size: tuple[int, int, int]) -> None:
    e = hypersphere(*size)
    B = np.linalg.pinv(e.A)
    np.testing.assert_allclose(e.B, B, atol=1e-9)
    np.testing.assert_allclose(np.linalg.norm(e.B, axis=0), 1.0, atol=1e-9)  # columns on the sphere: Sec. 5
    o = e.orthonormal()
    np.testing.assert_allclose(o.B, np.linalg.pinv(o.A), atol=1e-9)


@given(SIZES)
def test_orthonormal_is_the_same_subspace_with_a_unit_ball_inside(size: tuple[int, int, int]) -> None:
    e = hypersphere(*size)
    o = e.orthonormal()
    X = e.up(np.random.default_rng(size[2]).standard_normal((5, e.dim)))
    np.testing.assert_allclose(o.residual(X), 0.0, atol=1e-8)
    gram = o.A.T @ o.A
    np.testing.assert_allclose(gram, gram[0, 0] * np.eye(e.dim), atol=1e-9)
    assert np.linalg.norm(o.A, axis=1).max() == pytest.approx(1.0)  # so the ball touches a wall, and only just
    theta = np.random.default_rng(0).standard_normal((50, e.dim))
    assert o.domain.contains(theta / np.linalg.norm(theta, axis=1, keepdims=True)).all()
    again = hypersphere(*size).orthonormal()
    np.testing.assert_array_equal(again.A, o.A)  # workers share (kind, d_e, seed), never a matrix


@given(st.integers(3, 80), st.integers(1, 6), st.integers(1, 6), st.integers(0, 2**32), st.booleans())
def test_growing_keeps_old_points_exact(D: int, dim: int, k: int, seed: int, orthonormal: bool) -> None:
    dim = min(dim, D - 1)
    k = min(k, D - dim)
    e = hypersphere(D, dim, seed)
    if orthonormal:
        e = e.orthonormal()
    g = e.grow(k, seed)
    assert (g.D, g.dim) == (D, dim + k)
    Y = e.domain.sample(10, seed)
    longer = np.hstack([Y, np.zeros((10, k))])
    np.testing.assert_array_equal(g.A[:, :dim], e.A)  # exactly the old columns
    np.testing.assert_allclose(g.up(longer), e.up(Y), atol=1e-14)
    assert g.domain.contains(longer).all()  # the polytope only grows
    np.testing.assert_allclose(g.A[:, :dim].T @ g.A[:, dim:], 0.0, atol=1e-9 * np.abs(g.A).max() ** 2 * D)
    np.testing.assert_allclose(g.down(g.up(longer)), longer, atol=1e-8 * max(1.0, np.abs(Y).max()))
    assert np.linalg.matrix_rank(g.A) == dim + k


def test_growing_to_the_whole_cube() -> None:
    e = hypersphere(12, 3, 0).orthonormal()
    for seed in range(3):
        e = e.grow(3, seed)
    assert e.dim == 12
    X = np.random.default_rng(0).uniform(-1, 1, (20, 12))
    np.testing.assert_allclose(e.residual(X), 0.0, atol=1e-9)  # everything is reachable
    assert e.domain.contains(e.down(X)).all()
    with pytest.raises(InputError, match="at most D = 12 dimensions; this one has them all"):
        e.grow(1, 0)


@pytest.mark.parametrize("D", [100, 1000])
def test_growing_keeps_row_norms_even(D: int) -> None:
    """The polytope stays round: no parameter moves much more than another, less unevenly than in a fresh draw."""
    e = hypersphere(D, 4, 0).orthonormal()
    for step in range(8):
        e = e.grow(2, step)
    rows = np.linalg.norm(e.A, axis=1)
    fresh = np.linalg.norm(hypersphere(D, e.dim, 0).orthonormal().A, axis=1)
    assert rows.std() / rows.mean() < 0.15
    assert rows.std() / rows.mean() < fresh.std() / fresh.mean()


@settings(max_examples=20)
@given(SIZES)
def test_the_domain_of_hesbo_is_the_box(size: tuple[int, int, int]) -> None:
    D, dim, seed = size
    e = hesbo(D, dim, seed)
    assert np.all(np.abs(e.A).sum(axis=1) == 1.0)
    low, high = e.domain.bounds
    np.testing.assert_allclose(low, -1.0, atol=1e-9)
    np.testing.assert_allclose(high, 1.0, atol=1e-9)
    corners = np.random.default_rng(seed).choice([-1.0, 1.0], size=(20, dim))
    assert e.domain.contains(corners).all()
    assert np.all(np.abs(e.up(corners)) == 1.0)


def test_identity_is_no_embedding() -> None:
    e = identity(7)
    X = np.random.default_rng(0).uniform(-1, 1, (4, 7))
    np.testing.assert_array_equal(e.up(X), X)
    np.testing.assert_array_equal(e.down(X), X)
    np.testing.assert_allclose(e.domain.bounds[1], 1.0)


@given(SIZES)
def test_from_matrix(size: tuple[int, int, int]) -> None:
    D, dim, seed = size
    B = np.random.default_rng(seed).standard_normal((dim, D))
    e = from_matrix(B)
    np.testing.assert_allclose(e.B, B, atol=1e-7 * np.abs(B).max())
    Y = e.domain.sample(5, seed)
    assert np.abs(e.up(Y)).max() <= 1 + 1e-9
    np.testing.assert_allclose(B @ e.up(Y).T, Y.T, atol=1e-8 * max(1.0, np.abs(Y).max()))  # B x = y: eq. 1


@given(SIZES, st.floats(0.0, 0.9))
def test_an_affine_embedding_passes_through_its_point(size: tuple[int, int, int], reach: float) -> None:
    D, dim, seed = size
    x0 = np.random.default_rng(seed).uniform(-reach, reach, D)
    e = hypersphere(D, dim, seed).orthonormal().through(x0)
    np.testing.assert_array_equal(e.up(np.zeros(dim)), x0)
    np.testing.assert_allclose(e.down(x0), 0.0, atol=1e-12)
    Y = e.domain.sample(10, seed)
    assert np.abs(e.up(Y)).max() <= 1 + 1e-9
    np.testing.assert_allclose(e.down(e.up(Y)), Y, atol=1e-8 * max(1.0, np.abs(Y).max()))
    np.testing.assert_allclose(from_matrix(e.B, x0).up(Y), e.up(Y), atol=1e-7)


def test_through_a_point_on_a_wall() -> None:
    x0 = np.zeros(30)
    x0[0], x0[5] = 1.0, -1.0
    e = hypersphere(30, 5, 0).orthonormal().through(x0)
    Y = e.domain.sample(50, 1)
    assert np.abs(e.up(Y)).max() <= 1 + 1e-9
    assert np.linalg.norm(Y, axis=1).min() > 0


@pytest.mark.parametrize("make", [hypersphere, gaussian, hesbo])
@pytest.mark.parametrize(("D", "dim"), [(10, 11), (10, 0), (10, -1), (0, 0)])
def test_bad_sizes(make: Callable[[int, int, int], Embedding], D: int, dim: int) -> None:
    with pytest.raises(InputError, match=rf"`1 <= dim <= D` must hold; got dim={dim}, D={D}.*Choose"):
        make(D, dim, 0)


@pytest.mark.parametrize(
    "B", [np.ones((2, 5)), np.full((1, 4), np.nan), np.ones(4), np.ones((5, 2)), np.zeros((1, 3)), np.zeros((0, 3))]
)
def test_bad_matrices(B: np.ndarray) -> None:
    with pytest.raises(InputError, match="full row rank; got shape"):
        from_matrix(B)


@pytest.mark.parametrize("x0", [np.zeros(3), np.full(4, 1.5), np.full(4, np.nan)])
def test_bad_points_to_pass_through(x0: np.ndarray) -> None:
    with pytest.raises(InputError, match=r"a point of the cube \[-1, 1\]\^4"):
        hypersphere(4, 2, 0).through(x0)


@pytest.mark.parametrize("k", [0, -1, 9])
def test_bad_growth(k: int) -> None:
    with pytest.raises(InputError, match=f"asked for {k} more. Ask for 1 to 8"):
        hypersphere(10, 2, 0).grow(k, 0)


def test_same_seed_same_embedding_other_seed_another() -> None:
    for make in KINDS.values():
        np.testing.assert_array_equal(make(30, 4, 5).A, make(30, 4, 5).A)
        assert not np.array_equal(make(30, 4, 5).A, make(30, 4, 6).A)
    np.testing.assert_array_equal(hypersphere(30, 4, 5).grow(2, 3).A, hypersphere(30, 4, 5).grow(2, 3).A)


def test_orthonormal_coordinates_span_the_same_subspace_where_columns_are_empty() -> None:
    embedding = hesbo(6, 4, 0)
    assert np.linalg.matrix_rank(embedding.A) == 3  # no parameter has the fourth coordinate
    made = embedding.orthonormal()
    assert made.dim == 3
    assert np.allclose(embedding.residual(made.up(np.eye(3))), 0.0)
    assert np.allclose(made.residual(embedding.up(np.eye(4))), 0.0)


def test_given_directions_extend_an_embedding() -> None:
    embedding = hypersphere(10, 2, 0).orthonormal()
    N = np.zeros((10, 3))
    N[3, 0] = N[4, 1] = 1.0
    N[:, 2] = 2.0 * N[:, 0] - N[:, 1]  # nothing new
    made = embedding.extended(N)
    assert made.dim == 4
    assert np.allclose(made.residual(N.T), 0.0)
    y = np.array([0.2, -0.1])
    assert np.allclose(made.up([*y, 0.0, 0.0]), embedding.up(y))
    assert np.allclose(made.A.T @ made.A, np.diag(np.diag(made.A.T @ made.A)))
    with pytest.raises(InputError, match="D x k"):
        embedding.extended(np.zeros((9, 1)))


@given(SIZES, st.booleans())
def test_a_direction_through_a_point_is_as_long_as_the_others(size: tuple[int, int, int], orthonormal: bool) -> None:
    D, dim, seed = size
    embedding = hypersphere(D + 1, dim, seed)
    embedding = embedding.orthonormal() if orthonormal else embedding
    x = np.random.default_rng(seed).uniform(-1, 1, D + 1)
    made = embedding.including(x)
    assert made.dim == dim + 1
    assert made.residual(x) < 1e-9 * D
    lengths = np.linalg.norm(made.A, axis=0)
    assert lengths[-1] == pytest.approx(np.sqrt(np.mean(lengths[:-1] ** 2)))
    np.testing.assert_array_equal(made.A[:, :-1], embedding.A)
    np.testing.assert_allclose(made.A[:, -1] @ embedding.A, 0.0, atol=1e-9)
    assert made.including(x) is made  # nothing new


@pytest.mark.parametrize("at", [0, 3, 6])
def test_a_parameter_on_an_axis_of_its_own(at: int) -> None:
    embedding = hypersphere(6, 2, 0).orthonormal().through(np.linspace(-0.5, 0.5, 6))
    made = embedding.beside(at)
    assert (made.D, made.dim) == (7, 3)
    x = made.up([0.7, 0.1, -0.2])
    assert x[at] == 0.7
    np.testing.assert_allclose(np.delete(x, at), embedding.up([0.1, -0.2]))
    np.testing.assert_allclose(made.down(x), [0.7, 0.1, -0.2])
    low, high = made.domain.bounds
    assert (low[0], high[0]) == (pytest.approx(-1.0), pytest.approx(1.0))
