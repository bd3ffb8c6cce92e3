"""One file for each figure of the paper, redrawn from committed results without running anything.

A figure's module holds `data` and `draw(data, path)`; drawing returns a caption that says what is seen and whether it agrees
with the paper. `data(folder)` reads the runs of a folder; a module whose `data()` needs no folder makes numbers of its own, and
they are kept under `<results>/figures/<name>.json`, from where they are redrawn.
"""

from __future__ import annotations

import difflib
import inspect
import json
import os
import pkgutil
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from alebo import InputError


def names() -> list[str]:
    """Every figure: the modules of this package."""
    return sorted(m.name for m in pkgutil.iter_modules(__path__) if not m.name.startswith("_"))


def find(name: str) -> str:
    """The figure of that name, or whose name begins so (`fig1` for `fig1_distortion`)."""
    known, wanted = names(), name.replace("-", "_")
    if wanted in known:
        return wanted
    short = wanted.lower().removeprefix("fig")
    hits = [n for n in known if n.startswith(f"{wanted.lower()}_")]
    hits = hits or [n for n in known if short in n.lower().removeprefix("fig").split("_")]
    if len(hits) == 1:
        return hits[0]
    near = difflib.get_close_matches(wanted, [*known, *(n.split("_")[0] for n in known)], n=1)
    hint = f"Did you mean {near[0]!r}? " if near else ""
    raise InputError(f"A figure's name must be known; got {name!r}. {hint}Known: {', '.join(known)}.")


def module(name: str) -> ModuleType:
    """The module of a figure."""
    return import_module(f".{find(name)}", __name__)


def stored(folder: Path, name: str) -> Any:
    """The numbers that `compute` made for this figure."""
    path = Path(folder) / "figures" / f"{name}.json"
    try:
        return json.loads(path.read_text())
    except FileNotFoundError:
        raise InputError(
            f"This figure is drawn from stored numbers; {path} is not there. "
            f"Make them with: alebo bench figure {name} {folder} --compute"
        ) from None
    except ValueError as error:
        raise InputError(
            f"Stored numbers are one JSON file; {path} cannot be read: {error}. Make them again."
        ) from None


def reads_runs(name: str) -> bool:
    """Whether the figure is drawn from the runs of a folder, and not from numbers of its own."""
    return "folder" in inspect.signature(module(name).data).parameters


def compute(name: str, folder: Path) -> Path:
    """Make and store the numbers of a figure that has its own."""
    name = find(name)
    if reads_runs(name):
        raise InputError(f"{name} needs no numbers of its own: it is drawn from runs. Leave out --compute.")
    path = Path(folder) / "figures" / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(module(name).data(), separators=(",", ":"))
    part = path.with_suffix(".part")
    part.write_text(text + "\n")
    os.replace(part, path)
    return path


def figure(name: str, folder: Path, out: Path) -> tuple[Path, str]:
    """Draw one figure; its picture and its caption."""
    name = find(name)
    made = module(name)
    data = made.data(Path(folder)) if reads_runs(name) else stored(folder, name)
    out.mkdir(parents=True, exist_ok=True)
    path = out / f"{name}.png"
    caption = str(made.draw(data, path))
    (out / f"{name}.txt").write_text(caption + "\n")
    return path, caption
