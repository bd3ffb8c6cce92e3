"""Linear policies: gymnasium's own reward, and the messages."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from tests.conftest import require_module

import alebo
from alebo.bench.problems import gym, problem


@pytest.fixture(autouse=True)
def _parts() -> None:
    require_module("gymnasium", "gym")
    require_module("mujoco", "gym")


@pytest.mark.parametrize(
    ("name", "D"), [("swimmer-16", 16), ("hopper-33", 33), ("halfcheetah-102", 102), ("walker-102", 102)]
)
def test_sizes_fit_the_tasks(name: str, D: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    gym._environment.cache_clear()
    p = problem(name)
    assert p.D == D
    assert np.isfinite(p.evaluate(np.zeros(D)))
    assert not list(tmp_path.iterdir())  # MuJoCo's own warnings go to a file in the working folder


def test_reward_is_gymnasium_s() -> None:
    import gymnasium

    W = np.random.default_rng(0).uniform(-0.3, 0.3, (2, 8))
    env = gymnasium.make("Swimmer-v5")
    sense, _ = env.reset(seed=0)
    total, over = 0.0, False
    while not over:
        sense, gained, ended, cut, _ = env.step(np.clip(W @ sense, -1, 1))
        total, over = total + float(gained), ended or cut
    env.close()
    assert gym.episode("Swimmer-v5", W.ravel()) == pytest.approx(total, rel=1e-12)


def test_same_value_again_and_another_from_another_start() -> None:
    w = np.random.default_rng(2).uniform(-1, 1, 102)
    here = gym.episode("HalfCheetah-v5", w)
    gym.episode("HalfCheetah-v5", -w)
    assert gym.episode("HalfCheetah-v5", w) == here
    assert gym.episode("HalfCheetah-v5", w, seed=1) != here


def test_error_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(alebo.InputError, match="16 weights"):
        gym.episode("Swimmer-v5", np.zeros(5))
    gym._environment.cache_clear()
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    with pytest.raises(alebo.MissingPartError, match=r'pip install "alebo\[gym\]"'):
        problem("swimmer-16")


def test_a_diverging_simulation_is_a_failed_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    env = gym._environment("Swimmer-v5")
    monkeypatch.setattr(env, "step", lambda action: (np.zeros(8), float("nan"), False, False, {}))
    with pytest.raises(alebo.EvaluationError, match="diverged"):
        gym.episode("Swimmer-v5", np.zeros(16))
