"""The licences of the pinned packages: what `pip install alebo` brings can be used in any product."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PERMISSIVE = r"MIT|BSD|Apache|ISC|PSF|Python Software Foundation|Zlib|0BSD|CC0|BSL-1|HPND|CNRI"
WEAK = r"MPL|Mozilla|LGPL|Lesser General Public"  # a product may use them as they are
# Packages of an extra that no product needs, with the reason; nothing of alebo links to them.
STRONG = {"directsearch": "Nevergrad, a peer of the benchmark, installs it (extra peers)"}


def name_of(text: str) -> str:
    return re.sub(r"[-_.]+", "-", text).lower()


def pinned() -> list[str]:
    return re.findall(r"^([A-Za-z0-9_.-]+)==", (ROOT / "constraints.txt").read_text(), flags=re.M)


def installed(name: str) -> Distribution | None:
    try:
        return distribution(name)
    except PackageNotFoundError:
        return None


def licence(package: Distribution) -> str:
    """What its metadata say: the expression, or the classifiers and the first line of the free text."""
    meta = package.metadata
    if meta.get("License-Expression"):
        return str(meta["License-Expression"])
    classes = [c for c in meta.get_all("Classifier") or [] if c.startswith("License ::")]
    text = (meta.get("License") or "").strip()
    return "; ".join([*classes, text[:60] if classes or len(text) < 200 else text])


def verdict(words: str) -> str:
    """permissive, weak (copyleft of the file or library only), strong or unknown."""
    without_lesser = re.sub(r"LGPL\S*|(Library or )?Lesser General Public License", "", words)
    if re.search(r"GPL|General Public License", without_lesser):
        return "strong"
    if re.search(WEAK, words):
        return "weak"
    return "permissive" if re.search(PERMISSIVE, words) or "Permission is hereby granted" in words else "unknown"


def needed(requirements: list[str], seen: set[str]) -> set[str]:
    """The packages that these requirements name, and all that those require without an extra."""
    for line in requirements:
        found = re.match(r"[A-Za-z0-9_.-]+", line)
        assert found is not None
        name = name_of(found.group())
        if "extra ==" not in line and name not in seen:
            seen.add(name)
            package = installed(name)
            needed(list(package.requires or ()) if package is not None else [], seen)
    return seen


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("MIT", "permissive"),
        ("LGPL-2.1-or-later", "weak"),
        ("License :: OSI Approved :: GNU Library or Lesser General Public License (LGPL); LGPL", "weak"),
        ("MPL-2.0 AND MIT", "weak"),
        ("GPL-3.0-or-later", "strong"),
        ("AGPL-3.0", "strong"),
        ("LGPL-3.0 AND GPL-2.0", "strong"),
        ("License :: OSI Approved :: GNU General Public License v3 or later (GPLv3+)", "strong"),
        ("", "unknown"),
        ("Proprietary", "unknown"),
    ],
)
def test_a_licence_is_recognised(words: str, kind: str) -> None:
    assert verdict(words) == kind


def test_every_pinned_package_has_a_licence_that_is_known_and_allowed() -> None:
    here = {name: package for name in pinned() if (package := installed(name)) is not None}
    assert len(here) > 40
    kinds = {name: verdict(licence(package)) for name, package in here.items()}
    assert not [f"{n}: {licence(here[n])[:80]}" for n, kind in kinds.items() if kind == "unknown"]
    assert {name_of(n) for n, kind in kinds.items() if kind == "strong"} <= set(STRONG)


def test_what_alebo_itself_needs_is_free_of_strong_copyleft() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    names = needed(project["dependencies"], set())
    assert {"torch", "optuna", "sqlalchemy"} <= names
    known = {name: package for name in names if (package := installed(name)) is not None}
    assert not [n for n, package in known.items() if verdict(licence(package)) in ("strong", "unknown")]
    assert not names & set(STRONG)
