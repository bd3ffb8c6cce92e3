"""The numbers that single parts of a search give for fixed input: fits, chains, climbs, samples.

A few steps of each, so that a last bit that another processor rounds otherwise stays one. Where a number has a closed form or
another library computes it, it is compared with that elsewhere; these are of rules that have no other reference.
`python -m tests.golden.parts` records them again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from alebo.acquisition import _climb, _faces, maximize
from alebo.geometry import Polytope, gaussian, hypersphere
from alebo.geometry.section import Section
from alebo.models import Mixture, additive, coregional, fit_ard, subsets
from alebo.models.ard import ARDGP, typical_lengthscales
from alebo.models.ard_density import LogDensity
from alebo.models.ard_fit import fit_best, fit_each
from alebo.models.informed import Data
from alebo.models.mahalanobis import build, chains, likelihood
from alebo.models.mahalanobis.laplace import draws
from alebo.models.mahalanobis.model import MahalanobisGP
from alebo.models.priors import dense, embedded, scaled_region, sparse, trust_region
from alebo.models.surrogate import in_units, unexplained

FILE = Path(__file__).with_name("parts.json")
Array = np.ndarray


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def data(n: int, D: int, seed: int = 1) -> tuple[Array, Array]:
    """Points of the unit cube and a smooth function of two coordinates with a little noise.  -> n x D, n"""
    X = rng(seed).random((n, D))
    return X, np.sin(4.0 * X[:, 0]) + (X[:, 1] - 0.3) ** 2 + 0.05 * rng(seed + 1).standard_normal(n)


def posterior(n: int = 14, d: int = 3, known: bool = False, prior: Any = None) -> likelihood.LogPosterior:
    X, y = data(n, d)
    v = torch.from_numpy((y - y.mean()) / y.std())
    noise = torch.from_numpy(0.01 + 0.05 * rng(3).random(n)) if known else None
    return likelihood.LogPosterior(torch.from_numpy(2.0 * X - 1.0), v, noise, prior or likelihood.MetricPrior())


def metric(d: int = 3, m: int = 3, n: int = 10) -> MahalanobisGP:
    X, y = data(n, d)
    U = torch.from_numpy(np.triu(0.8 * rng(5).standard_normal((m, d, d)) + np.eye(d)))
    noises = torch.from_numpy(0.01 + 0.1 * rng(6).random((m, n)))
    v = torch.from_numpy((y - y.mean()) / y.std())
    return MahalanobisGP(
        torch.from_numpy(2.0 * X - 1.0), v, noises, U, torch.tensor([1.2, 0.7, 2.0][:m]).double(), 3, 2
    )


class Bumps:
    """An acquisition with two hills, of which one is skew.  k x 1 x d -> k"""

    def __call__(self, X: Tensor) -> Tensor:
        x = X.squeeze(-2)
        a = torch.linspace(-0.4, 0.9, x.shape[-1], dtype=x.dtype)
        skew = (x - a).square().sum(-1) + 2.0 * (x[..., 0] - 0.5 * x[..., 1]).square()
        return 1.5 * torch.exp(-skew) + torch.exp(-3.0 * (x + 0.6).square().sum(-1)) + 0.1 * x.sum(-1)


def polytope() -> Polytope:
    return gaussian(9, 3, 4).domain


# -- models --------------------------------------------------------------------------------------------------------------


def metric_fits() -> Iterator[Any]:
    for known, prior in ((False, likelihood.MetricPrior()), (True, likelihood.PAPER)):
        post = posterior(known=known, prior=prior)
        start = likelihood.cold_start(3, rng(2))
        yield start.pack()
        for steps in (2, 5):
            value, theta = likelihood._climb(post, start.pack(), steps)
            yield [value, *theta]
        others = [likelihood.cold_start(3, rng(k)) for k in (7, 8, 9)]
        for warm, cold in ((start, []), (None, others), (start, others)):
            found, value = likelihood.fit(post, warm, cold, iterations=4, screening=3)
            yield [value, *found.pack()]
        yield draws(post, start, 3, rng(4), inflation=2.0)
    many = posterior(110)
    found, value = likelihood.fit(many, start, others, iterations=2, screening=2)
    yield [value, *found.pack()]
    yield likelihood._climb(many, np.append(np.full(6, 90.0), [8.9, 2.9]), 1)[1]


def metric_chains() -> Iterator[Any]:
    for post in (posterior(), posterior(known=True)):
        target = chains.Target(post)
        state = chains.ChainState.first(3, rng(1))
        yield state.pack()
        value, slope = target(state.place + 0.1)
        yield [value, *slope]
        random = rng(2)
        for _ in range(3):
            state = chains.transition(target, state, random)
            yield state.pack()
        yield chains.transition(target, state, rng(3), steering=0.6).pack()[-1:]
        yield [chains._first_step(target, k * state.place, rng(4)) for k in (0.2, 1.0, 1.5)]
        yield state.hyperparameters().pack()
        yield state.padded(4, rng(5)).pack()
        kernels, end = chains.sample(post, state, 2, rng(6))
        yield from (h.pack() for h in kernels)
        yield end.pack()


def metric_models() -> Iterator[Any]:
    X, y = data(12, 2)
    Y, values = torch.from_numpy(2.0 * X - 1.0), torch.from_numpy(100.0 + 5.0 * y)
    at = torch.from_numpy(rng(8).uniform(-1, 1, (3, 2)))
    fitted = build.fit_gp(Y, values, samples=3, seed=4, cold=1, iterations=3, inflation=2.0)
    yield from (fitted.U, fitted.noise, fitted.memory, *fitted.moments(at.unsqueeze(-2)))
    memory = [chains.ChainState.first(2, rng(k)).pack() for k in (1, 2)]
    for how in ({}, {"afresh": False, "variances": torch.full((12,), 0.3).double()}):
        made = build.sample_gp(Y, values, samples=4, seed=3, warm=memory, **how)  # type: ignore[arg-type]
        yield from (made.U, made.noises, made.memory, *made.moments(at.unsqueeze(-2)))
    yield [build.moves(n, 12) for n in (99, 100, 101, 110, 150, 200, 300, 1000)]


def metric_process() -> Iterator[Any]:
    gp = metric()
    at = torch.from_numpy(rng(7).uniform(-1, 1, (4, 3)))
    found = gp.marginals(at)
    yield from (found.mean, found.variance, found.back(torch.ones(1, 4).double(), torch.full((1, 4), 0.3).double()))
    yield from gp.moments(at.unsqueeze(-2))
    joint = gp.posterior(at)
    yield from (joint.mean, joint.distribution.covariance_matrix)
    yield from gp.posterior(at[None]).distribution.covariance_matrix
    yield from (gp.gamma, gp.noise, gp.correlation(at[:2], at[2:]), *gp.leave_one_out(), gp.data.slopes(at))
    yield [gp.loo_log_density(), gp.loo_log_density(torch.tensor([1])), gp.noise_evidence(), gp.unexplained()]
    yield gp.data.foresaw(4)
    for other in (gp.share(1, 3), gp.conditioned(at, torch.arange(4.0).double()), gp.believing(at)):
        yield from other.marginals(at + 0.1)[:2]
    drawn = gp.draw(at, rng(1))
    yield from drawn.marginals(at + 0.1)[:2]


def full_space_process() -> Iterator[Any]:
    X, y = data(10, 4)
    at = torch.from_numpy(rng(9).random((3, 4)))
    for kernel in ("rbf", "matern"):
        gp = ARDGP.of(X, y, kernel, np.array([0.3, 0.8, 2.0, 9.0]), 1.4, 0.02 + 0.1 * X[:, 3], shift=2.0, scale=3.0)  # type: ignore[arg-type]
        found = gp.marginals(at)
        yield from (found.mean, found.variance, found.back(torch.ones(1, 3).double(), torch.full((1, 3), 0.3).double()))
        yield from (*gp.posterior(at), *gp.covariance(at), gp.draws(at, 2, 5), *gp.leave_one_out())
        yield from gp.draw(at, rng(3)).marginals(at + 0.05)[:2]
        yield [gp.mean, gp.log_likelihood(), gp.noise_evidence(), gp.loo_log_density(), *gp.memory]
    smooth = ARDGP.of(X, y, "rbf", np.array([0.3, 0.8, 2.0, 9.0]), 1.4, 0.02 + 0.1 * X[:, 3])
    yield from smooth.gradient(X[0] + 0.05)


def mixtures() -> Iterator[Any]:
    X, y = data(9, 3)
    at = torch.from_numpy(rng(4).random((2, 3)))
    lengths = np.array([0.3, 0.8, 2.0])
    one, two = (
        ARDGP.of(X, y, kernel, lengths, 1.4, 0.02 + 0.1 * X[:, 2], shift=2.0, scale=3.0)  # type: ignore[arg-type]
        for kernel in ("rbf", "matern")
    )
    both = Mixture((one, two))
    for model in (one, two, both, both.conditioned(at, torch.ones(2).double()), both.believing(at)):
        found = model.marginals(at + 0.1)
        by = torch.arange(1.0, 1.0 + found.mean.numel()).double().reshape(found.mean.shape)
        yield from (found.mean, found.variance, found.back(by, 0.3 * by), *found.matched(), *in_units(model, at))
    yield from (both.noise, *both.leave_one_out(), both.draw(at, rng(2)).v, *both.draw(at, rng(2)).marginals(at)[:2])
    yield [unexplained(one), unexplained(both), both.noise_evidence(), *typical_lengthscales(both)]


def full_space_fits() -> Iterator[Any]:
    X, y = data(16, 4)
    noise = 0.002 + 0.01 * X[:, 2]
    for prior in (dense(4), dense(4, "matern"), sparse(), trust_region(), scaled_region(4, 0.3), embedded(4)):
        for known in (None, noise):
            gp = fit_ard(X, 50.0 * y, prior, variances=None if known is None else 2500.0 * known, iterations=4, seed=2)
            yield [gp.log_density, *gp.lengthscales, gp.variance, gp.mean, *gp.noises[:2]]
    memory = gp.memory
    warm = fit_ard(X, y, dense(4), warm=memory, warm_iterations=2, cold=False)
    yield [warm.log_density, *warm.lengthscales, warm.noises[0]]
    searched = fit_ard(X, y, sparse(0.1, subsets=True), iterations=3, seed=1)
    yield [searched.log_density, *searched.lengthscales]
    best = fit_best(X, y, [dense(4), sparse()], seed=3)
    yield [best.loo_log_density(), *(v for m in best.memory for v in m)]
    X, y = data(155, 3)
    for prior in (dense(3), sparse(0.1, subsets=True)):
        (many,) = fit_each(X, y, [prior])
        yield [many.log_density, *many.lengthscales]


def subsets_of_coordinates() -> Iterator[Any]:
    X, y = data(18, 6)
    y = (y - y.mean()) / y.std()
    for known in (None, np.full(18, 0.01)):
        target = LogDensity(X, y, sparse(0.1), known)
        search = subsets.SubsetSearch(target)
        empty = search.empty()
        yield empty.theta
        one = search.with_one_more(empty)
        two = search.with_one_more(one)
        for found in (one, two, search.without_one(two), search.best_pair(), search.improved(empty, 3)):
            yield [found.value, *found.where, *found.theta]
            yield search.whole(found)
            yield search._slopes(found)
            yield search._screen(found, range(6), 0.7)
        yield search._pairs([(0, 1), (2, 5), (1, 4)], 0.5)
        active = search.active(target.start(np.log([0.2, 0.9, 6.0, 30.0, 4.9, 5.1]), 0.2, -4.0))
        assert active is not None
        yield [active.value, *active.where, *active.theta]
        ends = [target.start(np.log([0.2, 6.0, 30.0, 0.5, 9.0, 9.0]), 0.0, -3.0)]
        for fresh in (False, True):
            yield from subsets.from_subsets(target, ends, rounds=1, fresh=fresh)


def two_tasks() -> Iterator[Any]:
    X, y = data(9, 3)
    source = ARDGP.of(X, (y - y.mean()) / y.std(), "matern", np.array([0.4, 0.7, 3.0]), 1.1, np.full(9, 0.01))
    P, values = data(7, 3, seed=11)
    v = torch.from_numpy((values - values.mean()) / values.std())
    at = torch.from_numpy(rng(2).random((3, 3)))
    for known in (False, True):
        base = Data(torch.from_numpy(P), v, torch.full((7,), 0.02).double(), known, 5.0, 2.0)
        seen = coregional._Seen.of(source, P)
        rows, density = coregional._candidates(source, seen, v.numpy(), None, coregional.NOISES)
        yield from (rows[::97], density[::97])
        for part in coregional.fit_coregional(source, base).models:
            assert isinstance(part, coregional.CoregionalGP)
            found = part.marginals(at)
            yield [part.correlation, part.amplitude, part.mean, part.share, *part.noises[:2], part.noise_evidence()]
            yield from (found.mean, found.variance, *part.leave_one_out())
            yield found.back(torch.ones(1, 3).double(), torch.full((1, 3), 0.3).double())
            yield from part.draw(at, rng(4)).marginals(at + 0.05)[:2]
            yield from part.believing(at).marginals(at + 0.05)[:2]
            yield [part.log_likelihood()]


def sums_of_groups() -> Iterator[Any]:
    X, y = data(14, 5)
    groups = additive.random_groups(5, 2, 3)
    yield [j for g in groups for j in g]
    at = torch.from_numpy(2.0 * rng(2).random((3, 5)) - 1.0)
    for noise in (None, 0.05):
        gp = additive.fit_additive(2.0 * X - 1.0, 10.0 * y, groups, iterations=3, noise=noise)
        yield [gp.lengthscale, *gp.scales.tolist(), gp.noise, gp.shift, gp.spread, gp.log_likelihood, *gp.weights]
        yield from (*gp.posterior(at), *gp.group(additive.gather(at, groups)))
        width = torch.tensor([0.5, 1.0, 2.0]).double()
        for extra in (None, at.numpy()):
            yield additive.minimise_bounds(gp, width, -np.ones(5), np.ones(5), 7, raw=5, extra=extra)


# -- search --------------------------------------------------------------------------------------------------------------


def climbs() -> Iterator[Any]:
    domain, bumps = polytope(), Bumps()
    start = torch.from_numpy(domain.sample(4, 3))
    for steps in (1, 2, 4):
        yield from _climb.climb(bumps, domain, start, steps=steps)
    far = 1.7 * start  # outside, pulled in
    yield from _climb.climb(bumps, domain, far, steps=1)
    many = gaussian(450, 3, 4).domain  # near faces only
    yield from _climb.climb(bumps, many, torch.from_numpy(many.sample(2, 1)), steps=2)
    y = domain.sample(1, 8)[0]
    yield from maximize._polish(bumps, domain, y, -9.0, steps=3)
    H = torch.from_numpy(np.stack([np.eye(3), np.diag([1.0, 2.0, 3.0]), 1e-9 * np.eye(3)]))
    s, g = (torch.from_numpy(rng(k).standard_normal((3, 3))) for k in (1, 2))
    yield _climb._bfgs(H, s, g)
    yield _climb._bfgs(H, s, 0.1 * s)
    yield _climb._bfgs(H, 1e-9 * s, g)


def barriers() -> Iterator[Any]:
    for domain in (polytope(), gaussian(450, 3, 4).domain):
        W = torch.from_numpy(domain.sample(3, 5))
        step = torch.from_numpy(rng(2).standard_normal((3, 3)))
        faces = _faces.barrier(domain, W)
        t = 0.5 * faces.reach(step).clamp_max(1.0)
        yield from (faces.value(), *faces.derivatives(0.3), faces.reach(step), faces.value_at(W + t[:, None] * step, t))
        faces.move(W + t[:, None] * step)
        yield from (faces.value(), *faces.derivatives(0.3))


def starts() -> Iterator[Any]:
    domain, bumps = polytope(), Bumps()
    around = domain.sample(2, 1)
    yield maximize.scatter(domain, 3, around, 6)
    yield maximize._near(domain, around, 5, rng(1))
    values = rng(4).standard_normal(40)
    yield maximize._pick(values, 5, rng(2))
    yield maximize._pick_by_value(values, 6, rng(2))
    yield from maximize.candidates(bumps, domain, 3, around=around, raw=16, starts=3, steps=2)
    yield from maximize.candidates(
        bumps, domain, 3, extra=around, rough=lambda X: 0.5 * bumps(X), raw=8, starts=2, steps=1
    )
    low, high = -np.ones(3), np.array([1.0, 0.5, 0.8])
    for iterations in (1, 3):
        yield from maximize.maximise_in_box(
            bumps, low, high, seed=2, extra=around, raw=8, starts=3, iterations=iterations
        )
        yield from maximize.climb_in_box(bumps, around, low, high, iterations=iterations)
    for quasi in (False, True):
        yield maximize.perturbed(np.full(40, 0.5), np.zeros(40), np.ones(40), 3, rng(1), quasi=quasi)
    yield maximize._unit_points(70, 2, rng(3))
    yield maximize._unit_points(3, 5, rng(3))


# -- geometry ------------------------------------------------------------------------------------------------------------


def samples_of_polytopes() -> Iterator[Any]:
    for domain in (polytope(), polytope().intersect(np.ones((1, 3)), np.array([-0.2]))):
        yield from (domain.sample(4, 2), domain.sample(3, 2, steps=1), *domain._rounding, domain.centre)
        inner = domain.sample(3, 6)
        yield from domain.ray(inner, rng(1).standard_normal((3, 3)))
        yield domain.pull_inside(1.5 * inner + 0.3)
    large = gaussian(4100, 2, 3).domain  # single precision
    assert large.many
    yield np.round(large.sample(3, 5), 5)
    wide = large.sample(2, 5, steps=1) * 3.0
    yield from (large.pull_inside(wide), large.contains(wide))


def growing_embeddings() -> Iterator[Any]:
    for made in (hypersphere(8, 3, 5), gaussian(8, 3, 5)):
        plain = made.orthonormal()
        yield from (made.A, plain.A, plain.grow(2, 7).A, plain.including(0.5 * rng(1).uniform(-1, 1, 8)).A)
        yield plain.extended(rng(2).standard_normal((8, 2))).A
        yield plain.beside(2).A


def sections() -> Iterator[Any]:
    for seed in range(12):
        M, _ = np.linalg.qr(rng(seed).standard_normal((9, 3)))
        p = 1.4 * rng(100 + seed).uniform(-1, 1, 9)
        found = Section(p - M @ (M.T @ p), M)
        yield [found.reach(), found.meets_cube(), *(-1.0 if (v := found._certify(k)) is None else v for k in (1, 3, 9))]


PARTS: dict[str, Callable[[], Iterator[Any]]] = {
    part.__name__: part
    for part in (
        *(metric_fits, metric_chains, metric_models, metric_process, full_space_process, mixtures),
        full_space_fits,
        *(subsets_of_coordinates, two_tasks, sums_of_groups, climbs, barriers, starts),
        *(samples_of_polytopes, growing_embeddings, sections),
    )
}


def numbers(name: str) -> list[list[float]]:
    """What a part gives, as plain numbers."""
    return [np.asarray(v, dtype=float).ravel().tolist() for v in PARTS[name]()]


def main() -> None:
    """Record the numbers of all parts."""
    found = {name: [[float(f"{v:.10g}") for v in row] for row in numbers(name)] for name in PARTS}
    rows = [f'"{name}": [\n' + ",\n".join(map(json.dumps, part)) + "\n]" for name, part in found.items()]
    FILE.write_text("{\n" + ",\n".join(rows) + "\n}\n")


if __name__ == "__main__":
    main()
