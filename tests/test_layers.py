"""The layers: every import is read, and none may go to the same or a higher layer."""

from __future__ import annotations

import ast
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1] / "src" / "alebo"

# A module may import modules of a smaller number. Modules of one number do not know each other, but for SIBLINGS.
RANK = {
    "_errors": 0,
    "_seeds": 0,
    "_text": 0,
    "_logs": 0,
    "_show": 1,
    "parameters": 1,
    "_processes": 0,
    "_supervise": 0,
    "_urls": 0,
    "space": 1,
    "goals": 1,
    "geometry": 1,
    "models": 1,
    "_tasks": 1,
    "_table": 1,
    "_match": 2,
    "history": 2,
    "acquisition": 2,
    "methods": 3,
    "_failures": 1,
    "_schema": 1,
    "_stored": 1,
    "_best": 4,
    "_checks": 1,
    "_frame": 4,
    "_propose": 4,
    "_saving": 4,
    "sources": 4,
    "optimizer": 5,
    "runner": 6,
    "integrations": 6,
    "diagnostics": 6,
    "plots": 6,
    "report": 6,
    "progress": 6,
    "live": 6,
    "evaluator": 6,
    "studyfile": 6,
    "bench": 6,
    "_result": 6,
    "_minimize": 7,
    "cli": 7,
    "__main__": 8,
}
# Some of the outer modules use another: a report shows plots and diagnostics. The test for cycles holds for them, too.
SIBLINGS = {
    ("_seeds", "_errors"),
    ("space", "parameters"),
    ("_stored", "_schema"),
    ("space", "_show"),
    ("parameters", "_checks"),
    ("space", "_checks"),
    ("goals", "_checks"),
    ("sources", "_saving"),
    ("runner", "integrations"),
    ("integrations", "report"),
    ("report", "plots"),
    ("report", "diagnostics"),
    ("report", "progress"),
    ("live", "progress"),
    ("plots", "diagnostics"),
    ("studyfile", "evaluator"),
}
OPTIONAL = {
    "optuna",
    "matplotlib",
    "plotly",
    "mujoco",
    "smac",
    "cma",
    "pebble",
    "dask",
    "submitit",
    "typer",
    "rich",
    "jinja2",
}


def modules() -> dict[str, Path]:
    """Dotted name (without `alebo.`; the package itself is "") of every file."""
    found = {}
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(source: str, module: str, is_package: bool, known: set[str]) -> list[tuple[str, str, int, bool]]:
    """(imported module, imported name, line, at module level) for every import of alebo, anywhere in the file."""
    tree = ast.parse(source)
    typing_only = {
        id(n)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and ast.unparse(block.test).endswith("TYPE_CHECKING")
        for n in ast.walk(block)
    }
    inner = {
        id(n) for f in ast.walk(tree) if isinstance(f, ast.FunctionDef | ast.AsyncFunctionDef) for n in ast.walk(f)
    } | typing_only
    out: list[tuple[str, str, int, bool]] = []
    for node in ast.walk(tree):
        top = id(node) not in inner
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name == "alebo" or alias.name.startswith("alebo."):
                    out.append((alias.name.removeprefix("alebo").removeprefix("."), "", node.lineno, top))
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                parts = module.split(".") if module else []
                keep = len(parts) - node.level + int(is_package)
                base = ".".join([*parts[:keep], *(node.module.split(".") if node.module else [])])
            elif node.module and (node.module == "alebo" or node.module.startswith("alebo.")):
                base = node.module.removeprefix("alebo").removeprefix(".")
            else:
                continue
            for alias in node.names:
                deeper = f"{base}.{alias.name}".removeprefix(".")
                out.append((deeper, "", node.lineno, top) if deeper in known else (base, alias.name, node.lineno, top))
    return out


def part_of(module: str) -> str:
    return module.split(".")[0]


def wrong(module: str, target: str, name: str) -> str | None:
    """Why this import points the wrong way, or None."""
    here, there = part_of(module), part_of(target)
    if here == there:
        return None
    if there == "":
        if name.startswith("__") or here in (
            "bench",
            "cli",
        ):  # __version__; bench and cli are users
            return None
        return "only bench and cli import from alebo itself; name the module"
    if here == "bench":
        if RANK[there] and any(part.startswith("_") for part in target.split(".")):  # layer 0 is for all
            return "bench uses public modules, as any other user does"
        return None if there != "cli" else "bench does not know the command line"
    if there == "bench" and here != "cli":
        return "nobody but the command line knows bench"
    if RANK[there] < RANK[here] or (here, there) in SIBLINGS:
        return None
    return f"{here} (layer {RANK[here]}) may not use {there} (layer {RANK[there]})"


FOUND = modules()


def test_every_module_has_its_layer() -> None:
    strange = sorted({part_of(m) for m in FOUND} - set(RANK) - {""})
    assert not strange, f"Give these modules a layer in RANK, and a line in docs/architecture.md: {strange}"


def test_the_page_about_the_architecture_names_every_module() -> None:
    page = (ROOT.parents[1] / "docs" / "architecture.md").read_text(encoding="utf-8")
    parts = sorted({part_of(m) for m in FOUND} - {"", "__main__"})
    assert not [p for p in parts if f"`{p}.py`" not in page and f"`{p}/`" not in page and f"`{p}`" not in page]


@pytest.mark.parametrize("module", [m for m in FOUND if m])
def test_imports_go_to_lower_layers(module: str) -> None:
    path = FOUND[module]
    broken = [
        f"{path.name}:{line} imports {target or 'alebo'}{': ' + name if name else ''}: {why}"
        for target, name, line, _ in imports(path.read_text(), module, path.name == "__init__.py", set(FOUND))
        if (why := wrong(module, target, name))
    ]
    assert not broken, "\n".join(broken)


def test_files_and_functions_are_small() -> None:
    """At most 350 lines a file and 60 a function: what is longer has a part that deserves a name."""
    long = [f"{path.name}: {n} lines" for path in FOUND.values() if (n := len(path.read_text().splitlines())) > 350]
    for path in FOUND.values():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                n = (node.end_lineno or node.lineno) - node.lineno + 1
                long += [f"{path.name}: {node.name} has {n} lines"] if n > 60 else []
    assert not long, "\n".join(long)


def test_no_import_cycles() -> None:
    graph = {
        m: {t for t, _, _, top in imports(p.read_text(), m, p.name == "__init__.py", set(FOUND)) if top and t in FOUND}
        - {m, ""}
        for m, p in FOUND.items()
        if m
    }
    done: set[str] = set()

    def walk(m: str, way: tuple[str, ...]) -> None:
        assert m not in way, "import cycle: " + " -> ".join([*way[way.index(m) :], m])
        if m in done:
            return
        # a package's __init__ imports its files; that is no cycle
        for t in graph.get(m, ()):
            walk(t, (*way, m))
        done.add(m)

    for m in graph:
        walk(m, ())


@pytest.mark.parametrize("module", [m for m in FOUND if m and part_of(m) in RANK and RANK[part_of(m)] <= 5])
def test_optional_libraries_stay_outside_the_core(module: str) -> None:
    tree = ast.parse(FOUND[module].read_text())
    inner = {id(n) for f in ast.walk(tree) if isinstance(f, ast.FunctionDef) for n in ast.walk(f)}
    inner |= {
        id(n)
        for b in ast.walk(tree)
        if isinstance(b, ast.If) and ast.unparse(b.test).endswith("TYPE_CHECKING")
        for n in ast.walk(b)
    }
    for node in ast.walk(tree):
        if id(node) in inner:
            continue
        names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and not node.level:
            names = [node.module or ""]
        heavy = {n.split(".")[0] for n in names} & OPTIONAL
        assert not heavy, f"{module}:{node.lineno} imports {heavy} at module level; import it inside the function"


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("geometry.polytope", "from ..space import Space"),
        ("models.ard", "from ..goals import Goals"),
        ("space", "def f():\n    from .optimizer import Optimizer"),
        ("methods.alebo", "import alebo.optimizer"),
        ("methods.alebo", "def f():\n    import alebo"),
        ("history", "from .acquisition import propose"),
        ("bench.speed", "from ..methods._method import Supports"),
        ("bench.speed", "def f():\n    from alebo.methods._method import Supports"),
        ("optimizer", "from .cli import main"),
        ("runner", "def f():\n    from .bench import problems"),
    ],
)
def test_a_wrong_import_is_seen(module: str, source: str) -> None:
    found = imports(textwrap.dedent(source), module, False, set(FOUND) | {"optimizer", "acquisition", "cli", "bench"})
    assert any(wrong(module, target, name) for target, name, _, _ in found), source
