"""The pictures of docs/report.md: four studies, their pages and figures in a real browser.

    python -m tests.report_pictures [FOLDER] [STUDY ...]      all: about five minutes; needs Chromium and Pillow; default docs/img

Studies: `springs` (60 parameters, failures, a constraint), `beam` (two objectives), `wide` (1000 parameters, 500 trials), `mixed` (whole
numbers and categories, several workers).
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import alebo
from alebo import AtMost, Categorical, Float, Int, Maximize, Minimize, Optimizer, Space
from alebo.report import LivePage, write_report
from tests.browser import Browser, Page


def springs(n: int = 80) -> Optimizer:
    """60 parameters of which p3, p5, p17 and p41 matter; every tenth evaluation fails."""
    space = Space([Float(f"p{i}", 0, 10) for i in range(60)])
    opt = Optimizer(space, [Minimize("mass"), AtMost("stress", 1.5)], seed=1, budget=n)
    for i in range(n):
        t = opt.ask()[0]
        if i % 10 == 7:
            opt.fail(t.number, "solver: no convergence after 500 iterations")
            continue
        x = t.x
        bowl = 2 * (x[3] - 0.3) ** 2 + 1.5 * (x[5] + 0.2) ** 2 + (x[17] - 0.4) ** 2 + x[41] ** 2 + 0.5 * x[17] * x[41]
        opt.tell(t.number, {"mass": float(np.exp(bowl)), "stress": float(1.4 + 0.6 * x[3] - 0.5 * x[17])})
    return opt


def beam(n: int = 40) -> Optimizer:
    """20 parameters, two objectives."""
    space = Space([Float(f"w{i}", 0.1, 5.0, log=True) for i in range(20)])
    opt = Optimizer(space, [Minimize("weight"), Maximize("stiffness")], seed=0, budget=n)
    for _ in range(n):
        t = opt.ask()[0]
        x = t.x
        weight = 10 + 3 * x[0] + 2 * x[4] + (x[7] - 0.3) ** 2
        opt.tell(t.number, {"weight": float(weight), "stiffness": float(5 + 2 * x[0] - (x[4] - 0.5) ** 2 + x[7])})
    return opt


def wide(n: int = 500) -> Optimizer:
    """1000 parameters of which five matter."""
    space = Space([Float(f"gain{i}", -1, 1) for i in range(1000)])
    opt = Optimizer(space, Minimize("loss"), method=alebo.methods.Sobol(), seed=0, budget=1000)
    for t in opt.ask(n):
        x = t.x
        opt.tell(t.number, float(3 + x[12] + (x[345] - 0.4) ** 2 + 0.8 * x[700] + x[12] * x[901] + 0.5 * x[999]))
    return opt


def tuning(params: dict[str, Any]) -> dict[str, float]:
    """A made-up training run of a network."""
    time.sleep(0.05 + 0.02 * params["layers"])
    loss = (np.log10(params["rate"]) + 2.5) ** 2 + 0.2 * (params["layers"] - 4) ** 2 + {"adam": 0.0, "sgd": 0.6, "lion": 0.3}[params["solver"]]  # fmt: skip
    return {"loss": float(loss + 0.3 * params["dropout"] ** 2)}


def mixed(folder: Path, n: int = 48) -> alebo.Study:
    """Whole numbers, categories and logarithmic ranges, evaluated by three workers."""
    others = [Float(f"scale{i}", 0, 1) for i in range(8)]
    space = Space([Float("rate", 1e-5, 1, log=True), Int("layers", 1, 12), Categorical("solver", ["adam", "sgd", "lion"]), Float("dropout", 0, 0.8), *others])  # fmt: skip
    study = alebo.Study.create(folder / "mixed.log", space, Minimize("loss"), method=alebo.methods.BO(), budget=n)
    alebo.run(study, tuning, workers=3)
    return study


def picture(page: Page, path: Path, **how: Any) -> None:
    """A PNG with few colours, so that it stays small."""
    from PIL import Image

    time.sleep(0.5)  # Plotly's own transitions
    page.picture(path, **how)
    with Image.open(path) as image:
        small = image.convert("RGB")
        if image.height > 3000 and image.width > 700:  # a whole page
            small = small.resize((620, image.height * 620 // image.width), Image.Resampling.LANCZOS)
            small = small.crop((0, 0, 620, min(small.height, 2300)))  # the tables below look alike
        small.quantize(64, dither=Image.Dither.NONE).save(path, optimize=True)
    print(f"{path} {path.stat().st_size / 1e3:.0f} KB", flush=True)


def main(out: Path, only: list[str]) -> None:
    """Make the studies and take the pictures."""
    out.mkdir(parents=True, exist_ok=True)
    only = only or ["springs", "beam", "wide", "mixed"]
    with tempfile.TemporaryDirectory() as name, Browser() as browser:
        folder = Path(name)
        made = {key: make() for key, make in (("springs", springs), ("beam", beam), ("wide", wide)) if key in only}
        for key, run in made.items():
            started = time.perf_counter()
            data = write_report(folder / f"{key}.html", run, name=key)
            size = (folder / f"{key}.html").stat().st_size / 1e6
            certain = [s["name"] for s in data["importance"] if s["certain"]]
            print(f"{key}: {time.perf_counter() - started:.0f} s, {size:.1f} MB, certain: {certain}", flush=True)
        if "mixed" in only:
            study = mixed(folder)
            write_report(folder / "mixed.html", study.optimizer(), name="mixed", spans=study.spans())
        for key, dark, width in (
            ("springs", False, 1100),
            ("beam", True, 1100),
            ("wide", False, 1100),
            ("mixed", False, 390),
        ):
            if key not in only:
                continue
            page = browser.open(folder / f"{key}.html", dark=dark, width=width)
            first = page.run("performance.getEntriesByName('first-contentful-paint')[0]?.startTime")
            print(f"{key}: first paint after {first} ms; console {page.console()}", flush=True)
            word = "dark" if dark else "phone" if width < 700 else "light"
            picture(page, out / f"report-{key}-{word}.png")
            for figure in {"springs": ["importance", "contour"], "mixed": []}.get(key, []):
                picture(page, out / f"plot-{figure}.png", clip=f"#box-{figure}")
            page.close()
        if "mixed" in only:
            page = browser.open(folder / "mixed.html", width=1000)
            picture(page, out / "plot-timeline.png", clip="#box-timeline")
            page.close()
        if "springs" not in only:
            return
        with LivePage(lambda: made["springs"], name="springs", every=1.0) as live:
            page = browser.open(live.address, width=1100, height=800)
            page.wait("R.figures.some(f => f.id === 'importance')")
            picture(page, out / "report-live.png", whole=False)
            page.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("docs/img"), sys.argv[2:])
