"""Draw docs/img/speed.png from the last line of bench/history.jsonl: CPU seconds of one ask against n and against D.

python -m alebo.bench.speed_picture
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from .figures._style import pyplot

BEFORE = {
    "n": {50: 0.14, 200: 0.48, 500: 1.06, 1000: 5.1, 2000: 14.6},
    "D": {100: 0.14, 1000: 0.14, 10_000: 0.73, 100_000: 7.9},
}


def curves(line: dict[str, dict[str, dict[str, float]]]) -> dict[str, dict[int, float]]:
    """Seconds by n at D = 1000, and by D at n = 50."""
    out: dict[str, dict[int, float]] = {"n": {}, "D": {}}
    for name, figures in line["rows"].items():
        found = {key: int(value) for key, value in re.findall(r"\b(n|D)=(\d+)", name)}
        if len(found) < 2 or "seconds" not in figures or name.startswith(("q=", "two")):
            continue
        if found["D"] == 1000:
            out["n"][found["n"]] = figures["seconds"]
        if found["n"] == 50:
            out["D"][found["D"]] = figures["seconds"]
    return {key: dict(sorted(points.items())) for key, points in out.items()}


def draw(history: Path, path: Path) -> None:
    line = json.loads(history.read_text().splitlines()[-1])
    plt = pyplot()
    figure, axes = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained", sharey=True)
    labels = {"n": "evaluations n (D = 1000)", "D": "parameters D (n = 50)"}
    for axis, (key, now) in zip(axes, curves(line).items(), strict=True):
        axis.plot(list(BEFORE[key]), list(BEFORE[key].values()), "o--", color="#969696", label="6048e11")
        axis.plot(list(now), list(now.values()), "o-", color="#08519c", label=line["commit"])
        axis.set(xscale="log", yscale="log", xlabel=labels[key])
        axis.grid(True, alpha=0.2)
    axes[0].set_ylabel("CPU s of one ask, d_e = 12")
    axes[0].legend(frameon=False)
    figure.savefig(path, metadata={"Software": None})
    plt.close(figure)


if __name__ == "__main__":
    draw(Path("bench/history.jsonl"), Path("docs/img/speed.png"))
