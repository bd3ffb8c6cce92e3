"""The hexapod: its reward, its oscillators, its low-dimensional truth, and its film."""

from __future__ import annotations

import math
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from tests.conftest import require_module

import alebo
from alebo.bench.problems import hexapod as h
from alebo.bench.problems import hexapod_film, problem


@pytest.fixture(autouse=True)
def _mujoco() -> None:
    require_module("mujoco", "hexapod")


def random_gait(seed: int) -> np.ndarray:
    low, high = h.hexapod().bounds.T
    return low + (high - low) * np.random.default_rng(seed).random(72)


def test_names_and_bounds() -> None:
    p = problem("hexapod-72")
    assert p.D == 72
    assert len(set(p.space.names)) == 72
    assert problem("hexapod-tripod-11").D == 11
    assert p.sign == -1.0


def test_reward_is_its_stated_parts_and_at_most_ten() -> None:
    walk = h.simulate(random_gait(0))
    assert walk.reward == pytest.approx(10 - walk.distance - 0.25 * walk.speed - 10 * walk.deviation)
    assert walk.qpos.shape == (3000, 25)
    assert walk.reward < 10
    # a deviation costs: the paper's printed sign would reward it
    assert min(walk.distance, walk.speed, walk.deviation) >= 0


def test_standing_still_keeps_height_and_place() -> None:
    walk = h.simulate(np.tile([0.0, 0.0, 0.0, 0.5], 18))
    assert walk.distance == pytest.approx(5.0, abs=1e-3)
    assert walk.deviation < 0.005
    assert walk.reward == pytest.approx(5.0, abs=0.05)


def test_tripod_walks_to_the_goal_and_backwards_when_reversed() -> None:
    walk = h.simulate(h.couple(h.TRIPOD))
    assert walk.distance < 0.5
    assert walk.reward > 9.0
    back = dict(zip(h.TRIPOD_BOUNDS, h.TRIPOD, strict=True)) | {"femur_phase": -math.pi / 2}
    assert h.simulate(h.couple(list(back.values()))).qpos[-1, 0] < -3.0


def test_the_low_dimensional_truth_is_affine_and_inside_the_bounds() -> None:
    rng = np.random.default_rng(1)
    low, high = problem("hexapod-tripod-11").bounds.T
    full = problem("hexapod-72").bounds
    corners = [np.where(rng.random(11) < 0.5, low, high) for _ in range(50)]
    for p in corners:
        assert np.all(h.couple(p) >= full[:, 0] - 1e-12)
        assert np.all(h.couple(p) <= full[:, 1] + 1e-12)
    a, b, t = corners[0], corners[1], 0.3
    np.testing.assert_allclose(h.couple(t * a + (1 - t) * b), t * h.couple(a) + (1 - t) * h.couple(b), atol=1e-12)
    images = np.stack([h.couple(p) for p in corners])
    assert np.linalg.matrix_rank(images - images[0]) == 11


def test_steering_turns() -> None:
    turned = dict(zip(h.TRIPOD_BOUNDS, h.TRIPOD, strict=True)) | {"steer": 0.1}
    straight = h.simulate(h.couple(h.TRIPOD)).qpos[-1, 1]
    assert (
        h.simulate(h.couple(list(turned.values()))).qpos[-1, 1] < straight - 0.5
    )  # longer strides on the left: to the right


def test_oscillators_lock_to_their_mean_frequency_and_keep_phases() -> None:
    gait = np.tile([0.3, 0.1, 0.0, 0.6], (18, 1))
    gait[::2, 3], gait[1::2, 3] = 0.5, 0.7
    late = h.oscillate(gait.ravel())[1500:]
    crossings = (np.diff(np.sign(late - 0.1), axis=0) > 0).sum(axis=0)
    assert set(crossings) <= {9}  # 15 s at 0.6 Hz, on every joint
    equal = np.tile([0.3, 0.1, 0.0, 0.6], (18, 1))
    equal[:, 2] = np.linspace(-3, 3, 18)
    t = 0.01 * np.arange(3000)
    ticks = 0.02 * (np.arange(3000) // 2)
    expected = 0.1 + 0.3 * np.cos(2 * math.pi * 0.6 * ticks[:, None] + equal[:, 2])
    np.testing.assert_allclose(h.oscillate(equal.ravel())[t > 10], expected[t > 10], atol=1e-9)
    np.testing.assert_array_equal(h.oscillate(equal.ravel())[0], 0.0)


def test_same_reward_after_other_gaits() -> None:
    here = h.simulate(random_gait(3)).reward
    h.simulate(random_gait(4))
    assert h.simulate(random_gait(3)).reward == here


def test_one_evaluation_costs_less_than_0_3_cpu_seconds() -> None:
    h.simulate(random_gait(0))
    began = time.process_time()
    for seed in range(5):
        h.simulate(random_gait(seed))
    assert (time.process_time() - began) / 5 < 0.3


def test_a_diverging_simulation_is_a_failed_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    real = h._rollout
    calls: list[int] = []

    def broken(*args: object) -> np.ndarray:
        calls.append(1)
        states = real(*args)  # type: ignore[arg-type]
        if len(calls) == 2:
            states[100:] = np.nan
        return states

    monkeypatch.setattr(h, "_rollout", broken)
    p = problem("hexapod-72")
    result = alebo.minimize(
        p.evaluate, p.space, budget=4, seed=0, goals=p.goals, method=alebo.methods.METHODS["sobol"]()
    )
    assert [t.state.value for t in result.history] == ["complete", "failed", "complete", "complete"]
    assert "diverged" in str(result.history[1].reason)


def test_a_robot_that_really_diverges_is_noticed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """MuJoCo itself blows up here: motors far too stiff for the step."""
    mujoco, model, _, start = h._robot()
    import copy

    stiff = copy.copy(model)
    stiff.actuator_gainprm[:, 0], stiff.actuator_biasprm[:, 1] = 1e9, -1e9
    stiff.actuator_biasprm[:, 2] = 1e7
    stiff.actuator_forcelimited[:] = 0
    monkeypatch.setattr(h, "_robot", lambda *_: (mujoco, stiff, mujoco.MjData(stiff), start))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(alebo.EvaluationError, match="diverged"):
        h.simulate(random_gait(0))
    assert not list(tmp_path.iterdir())  # MuJoCo's own warnings go to a file in the working folder


@pytest.mark.parametrize("gait", [np.zeros(11), np.full(72, np.nan)])
def test_a_wrong_gait_is_refused_with_a_message(gait: np.ndarray) -> None:
    with pytest.raises(alebo.InputError, match="72 finite numbers"):
        h.simulate(gait)


def test_missing_mujoco_is_the_pip_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mujoco", None)
    h._robot.cache_clear()
    with pytest.raises(alebo.MissingPartError, match=r'pip install "alebo\[hexapod\]"'):
        h.simulate(np.zeros(72))


def test_no_opengl_gives_a_message_and_a_plot_of_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require_module("matplotlib", "plot")
    monkeypatch.setenv("MUJOCO_GL", "disable")
    walk = h.simulate(h.couple(h.TRIPOD))
    picture, note = hexapod_film.film({"tripod": walk}, tmp_path / "walk.gif")
    assert picture == tmp_path / "walk.png"
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert "OpenGL" in note
    assert "apt install" in note
    assert not (tmp_path / "walk.gif").exists()


def test_film_names_are_checked(tmp_path: Path) -> None:
    with pytest.raises(alebo.InputError, match=r"ends in \.gif"):
        hexapod_film.film({}, tmp_path / "walk.mp4")
    with pytest.raises(alebo.InputError, match="a folder that exists"):
        hexapod_film.film({}, tmp_path / "nowhere" / "walk.gif")


def test_demo_optimizes_reports_and_films(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require_module("PIL", "hexapod")
    require_module("matplotlib", "plot")
    monkeypatch.setattr(hexapod_film, "EVERY", 1000)  # three frames are enough for a test
    seen: list[int] = []
    shown = h.demo(
        4, 0, tmp_path / "walk.gif", lambda opt, *_: seen.append(opt.asked), method=alebo.methods.METHODS["sobol"]()
    )
    assert seen == [1, 2, 3, 4]
    rewards = [t.outcomes["reward"].mean for t in shown.optimizer.history]
    assert shown.first.reward == rewards[0]
    assert shown.best.reward == max(rewards)
    if shown.note:  # no OpenGL on this machine: the plot
        assert shown.picture.suffix == ".png"
    else:
        from PIL import Image

        with Image.open(shown.picture) as film:
            assert film.n_frames == 3  # type: ignore[attr-defined]
            assert film.size == (900, 225)
