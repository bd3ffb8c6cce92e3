"""Is the model calibrated? The paper's Fig. 3 experiment on ten random embeddings: sampled, Laplace by its inflation, and ARD.

    python -m alebo.bench.calibration            the table (about ten minutes)
    python -m alebo.bench.calibration quick 100  its first cell, on embeddings 100 to 109
    python -m alebo.bench.calibration intervals  another table: how often 95 % intervals of the full-space model hold

Hartmann6 in D = 100; training and 300 test points uniform in the embedding; 2-sd coverage, R2 and mean log density of the
test points, each the mean over ten embeddings. ARD is BoTorch's default GP on the same points scaled to the unit cube.
"""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch

from alebo.bench.problems import PROBLEMS
from alebo.geometry import hypersphere
from alebo.models import fit_gp, sample_gp
from alebo.models.ard_fit import fit_ard
from alebo.models.priors import ARDPrior, dense

TEST = 300
EMBEDDINGS = 10


def scores(truth: torch.Tensor, mean: torch.Tensor, sd: torch.Tensor) -> tuple[float, float, float]:
    """R2, 2-sd coverage, mean log density."""
    off = truth - mean
    density = -0.5 * (off / sd) ** 2 - sd.log() - 0.5 * math.log(2 * math.pi)
    r2 = 1.0 - float((off**2).mean() / truth.var(unbiased=False))
    return r2, float((off.abs() < 2 * sd).double().mean()), float(density.mean())


def data(seed: int, dim: int, n: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Points of a random embedding and Hartmann6 there; n to train on, then the test points."""
    problem = PROBLEMS["hartmann6-100"]()
    embedding = hypersphere(100, dim, seed).orthonormal()
    Y = embedding.domain.sample(n + TEST, seed)
    return torch.from_numpy(Y), torch.tensor([problem.evaluate((x + 1) / 2) for x in embedding.up(Y)]).double()


def sampled(Y: torch.Tensor, values: torch.Tensor, n: int) -> tuple[float, float, float]:
    """The default model; its chains have together gone as far as in a search of n evaluations, ten transitions for each."""
    model = sample_gp(Y[:n], values[:n], samples=25, seed=0)
    for i in range(10 * n // 25):
        model = sample_gp(Y[:n], values[:n], samples=25, seed=i, warm=model.memory)
    mean, variance = model.moments(Y[n:].unsqueeze(1))
    return scores(values[n:], mean, variance.sqrt())


def laplace(
    inflation: Callable[[int], float | None],
) -> Callable[[torch.Tensor, torch.Tensor, int], tuple[float, float, float]]:
    def run(Y: torch.Tensor, values: torch.Tensor, n: int) -> tuple[float, float, float]:
        model = fit_gp(Y[:n], values[:n], samples=25, seed=0, cold=5, inflation=inflation(n))
        mean, variance = model.moments(Y[n:].unsqueeze(1))
        return scores(values[n:], mean, variance.sqrt())

    return run


def ard(Y: torch.Tensor, values: torch.Tensor, n: int) -> tuple[float, float, float]:
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import SingleTaskGP
    from botorch.models.transforms import Normalize
    from gpytorch.mlls import ExactMarginalLogLikelihood

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = SingleTaskGP(Y[:n], values[:n, None], input_transform=Normalize(Y.shape[1]))
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        posterior = model.posterior(Y[n:].unsqueeze(1))
    return scores(values[n:], posterior.mean.flatten().detach(), posterior.variance.flatten().detach().sqrt())


MODELS = {
    "sampled, the default": sampled,
    "Laplace as it is (1)": laplace(lambda n: 1.0),
    "Laplace, 10 + 500 / n": laplace(lambda n: None),
    "the paper's code (n)": laplace(float),
    "ARD, scaled coordinates": ard,
}


def main(cells: list[tuple[int, int]], first: int = 0) -> None:
    print("| n | d_e | model | R2 | coverage of 2 sd | mean log density |")
    print("|---|---|---|---|---|---|")
    for n, dim in cells:
        worlds = [data(seed, dim, n) for seed in range(first, first + EMBEDDINGS)]
        for name, model in MODELS.items():
            r2, coverage, density = np.mean([model(Y, values, n) for Y, values in worlds], axis=0)
            print(f"| {n} | {dim} | {name} | {r2:.3f} | {coverage:.3f} | {density:.3f} |", flush=True)


def covered(n: int, prior: ARDPrior, *, known: bool, sets: int, fresh: int = 300) -> list[float]:
    """For each data set of n points, the share of fresh noisy outcomes that the 95 % intervals hold.

    The function of two parameters is smooth, and a quarter of the variance is noise, reported or not.
    """
    shares, sd = [], 0.5
    for seed in range(sets):
        rng = np.random.default_rng(seed)
        U = rng.random((n + fresh, 2))
        X = 2.0 * U - 1.0
        values = np.sin(2.0 * X[:, 0]) + X[:, 1] + sd * rng.standard_normal(n + fresh)
        gp = fit_ard(U[:n], values[:n], prior, variances=np.full(n, sd**2) if known else None)
        mean, variance = (t.numpy() for t in gp.posterior(torch.from_numpy(U[n:])))
        noise = sd**2 if known else float(gp.noises.mean()) * gp.scale**2
        shares.append(float(np.mean(np.abs(values[n:] - mean) <= 1.959964 * np.sqrt(variance + noise))))
    return shares


def intervals(sizes: tuple[int, ...] = (53, 67, 200), sets: int = 40) -> None:
    """Print how often the intervals hold, by who knows the noise, with the standard error over data sets."""
    print(f"| 95 % intervals of the full-space model hold | {' | '.join(f'{n} points' for n in sizes)} |")
    print("|---|" + "---|" * len(sizes))
    free = replace(dense(2), noise_density=None)
    for name, prior, known in (
        ("with reported noise", dense(2), True),
        ("with inferred noise", dense(2), False),
        ("with inferred noise, and no prior of it", free, False),
    ):
        rows = [covered(n, prior, known=known, sets=sets) for n in sizes]
        cells = [f"{np.mean(r):.3f} ± {np.std(r, ddof=1) / math.sqrt(sets):.3f}" for r in rows]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    torch.set_num_threads(1)
    if sys.argv[1:2] == ["intervals"]:
        intervals()
        sys.exit()
    quick = sys.argv[1:2] == ["quick"]
    main([(100, 6)] if quick else [(100, 6), (100, 12), (50, 6)], int(sys.argv[2]) if len(sys.argv) > 2 else 0)
