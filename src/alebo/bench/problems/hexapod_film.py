"""Films of walking hexapods, drawn in a process of its own: OpenGL is chosen once per process and may crash it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from alebo import InputError, MissingPartError

WIDTH, HEIGHT = 300, 225
EVERY = 25  # steps of 10 ms between frames; shown for 80 ms each, so the film runs three times as fast as the robot
FRAME_MS = 80
BACKENDS = ("egl", "osmesa", "glfw")


def film(walks: Mapping[str, Any], out: str | Path) -> tuple[Path, str]:
    """Write a GIF of these walks side by side; where that cannot be, a plot of their paths, and the reason."""
    target = Path(out)
    if target.suffix.lower() != ".gif":
        raise InputError(f"A film is a GIF; got {target.name!r}. Give a name that ends in .gif.")
    if not target.parent.is_dir():
        raise InputError(f"A film needs a folder that exists; there is none at {target.parent}. Make it first.")
    if target.exists():
        target.unlink()  # a film of an earlier run must not pass for this one
    with tempfile.TemporaryDirectory() as folder:
        record = Path(folder) / "walks.npz"
        titles = [f"{title}: {walk.reward:.2f}" for title, walk in walks.items()]
        np.savez(record, titles=titles, qpos=np.stack([walk.qpos[::EVERY] for walk in walks.values()]))
        wanted = os.environ.get("MUJOCO_GL")
        for backend in [wanted] if wanted else BACKENDS:
            done = subprocess.run(
                [sys.executable, "-m", __name__, str(record), str(target)],
                env={**os.environ, "MUJOCO_GL": backend},
                capture_output=True,
                check=False,
                timeout=600,
            )
            if done.returncode == 0 and target.exists():
                return target, ""
    note = (
        "A film needs OpenGL without a screen (EGL or OSMesa) and Pillow, and none worked here; the paths are "
        'plotted instead. On Debian or Ubuntu: apt install libegl1 libgl1-mesa-dri; and pip install "alebo[hexapod]".'
    )
    return plot_paths(walks, target.with_suffix(".png")), note


def plot_paths(walks: Mapping[str, Any], out: Path) -> Path:
    """The torso's path of every walk, seen from above."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingPartError(
            'A plot of the paths needs Matplotlib, which is not installed. Run: pip install "alebo[plot]"'
        ) from None
    from .hexapod import GOAL

    figure = Figure(figsize=(7, 4), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    for title, walk in walks.items():
        axes.plot(walk.qpos[:, 0], walk.qpos[:, 1], label=f"{title}: {walk.reward:.2f}")
    axes.plot(*GOAL, "o", color="tab:green", markersize=12, label="goal")
    axes.plot(0, 0, "k+", label="start")
    axes.set(xlabel="x (m)", ylabel="y (m)", title="Paths of the hexapod in 30 s")
    axes.set_aspect("equal", adjustable="datalim")
    axes.legend()
    figure.savefig(out, dpi=120)
    return out


def _render(record: str, target: str) -> None:
    """The child process: every frame of every walk, then one GIF."""
    import mujoco
    from PIL import Image, ImageDraw

    with np.load(record) as saved:
        titles, qpos = saved["titles"], saved["qpos"]  # walks x frames x nq
    model = mujoco.MjModel.from_xml_string(resources.files(__package__).joinpath("data/hexapod.xml").read_text())
    data = mujoco.MjData(model)
    camera = mujoco.MjvCamera()
    camera.distance, camera.azimuth, camera.elevation = 1.9, 125.0, -28.0
    frames = []
    with mujoco.Renderer(model, HEIGHT, WIDTH) as renderer:
        for k in range(qpos.shape[1]):
            sheet = Image.new("RGB", (WIDTH * len(titles), HEIGHT))
            for i, title in enumerate(titles):
                data.qpos[:] = qpos[i, k]
                mujoco.mj_kinematics(model, data)
                mujoco.mj_camlight(model, data)
                camera.lookat[:] = (qpos[i, k, 0], qpos[i, k, 1], 0.12)
                renderer.update_scene(data, camera)
                panel = Image.fromarray(renderer.render())
                ImageDraw.Draw(panel).text((8, 6), f"{title}   x = {qpos[i, k, 0]:.1f} m", fill=(20, 20, 20))
                sheet.paste(panel, (WIDTH * i, 0))
            frames.append(sheet.quantize(64, dither=Image.Dither.NONE))
    part = f"{target}.part"
    frames[0].save(
        part, format="GIF", save_all=True, append_images=frames[1:], duration=FRAME_MS, loop=0, optimize=False
    )
    os.replace(part, target)


if __name__ == "__main__":
    _render(sys.argv[1], sys.argv[2])
