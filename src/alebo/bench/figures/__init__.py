"""One file for each figure of the paper, redrawn from committed results without running anything.

A figure's module holds `data(folder)`, which reads or derives plain numbers, and `draw(data, path)`, which draws them and
returns a caption that says what is seen and whether it agrees with the paper. Where the numbers take long to make, a
third function `compute()` makes them, and they are kept under `<results>/figures/<name>.json`.
"""

from __future__ import annotations

import difflib
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
    known, wanted = names(), name.lower().replace("-", "_")
    if wanted in known:
        return wanted
    hits = [n for n in known if n.startswith(wanted + "_") or f"_{wanted}_" in n]
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


def compute(name: str, folder: Path) -> Path:
    """Make and store the numbers of a figure that needs it."""
    name = find(name)
    made = module(name)
    if not hasattr(made, "compute"):
        raise InputError(f"{name} needs no numbers of its own: it is drawn from runs. Leave out --compute.")
    path = Path(folder) / "figures" / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(made.compute(), separators=(",", ":"))
    part = path.with_suffix(".part")
    part.write_text(text + "\n")
    os.replace(part, path)
    return path


def figure(name: str, folder: Path, out: Path) -> tuple[Path, str]:
    """Draw one figure; its picture and its caption."""
    name = find(name)
    made = module(name)
    data = made.data(Path(folder))
    out.mkdir(parents=True, exist_ok=True)
    path = out / f"{name}.png"
    caption = str(made.draw(data, path))
    (out / f"{name}.txt").write_text(caption + "\n")
    return path, caption
