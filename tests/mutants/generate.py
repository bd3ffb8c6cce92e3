"""Draw mutants of the source with cosmic-ray's operators. Runs in an environment of its own: `make mutants` makes it.

    python tests/mutants/generate.py SEED COUNT FILE [PACKAGE ...]

The same number from each package, so that each has a line in the table. Skipped are annotations and what only people see:
the words of messages (`raise`, `log`), pictures, and how an object is printed; and `strict=True` of `zip`, which checks us.
"""

from __future__ import annotations

import ast
import json
import random
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator

HERE = Path(__file__).parent
SOURCE = HERE.parents[1] / "src" / "alebo"

# Those that leave code which runs: `a & b` for `a + b` of floats would be noticed by any test at all.
OPERATORS = [
    *("AddNot", "NumberReplacer", "ReplaceAndWithOr", "ReplaceOrWithAnd", "ZeroIterationForLoop"),
    *("ReplaceBreakWithContinue", "ReplaceContinueWithBreak", "ReplaceTrueWithFalse", "ReplaceFalseWithTrue"),
    *(f"ReplaceBinaryOperator_{pair}" for pair in ("Add_Sub", "Sub_Add", "Mul_Div", "Div_Mul", "Pow_Mul")),
    *(f"ReplaceBinaryOperator_{pair}" for pair in ("FloorDiv_Mul", "Mod_FloorDiv", "BitAnd_BitOr", "BitOr_BitAnd")),
    *(f"ReplaceComparisonOperator_{pair}" for pair in ("Eq_NotEq", "NotEq_Eq", "Is_IsNot", "IsNot_Is")),
    *(f"ReplaceComparisonOperator_{pair}" for pair in ("Lt_LtE", "LtE_Lt", "Gt_GtE", "GtE_Gt", "Lt_GtE", "GtE_Lt")),
    *(f"ReplaceUnaryOperator_{pair}" for pair in ("Delete_Not", "Delete_USub", "Delete_Invert")),
]

SHOWN = ("__repr__", "__str__", "_rows", "_repr_html_", "described", "plot")

Place = tuple[int, int]


def unseen(text: str) -> list[tuple[Place, Place]]:
    """The parts of a source that mean nothing when it runs, or only to people: annotations, messages, pictures."""
    parts: list[ast.AST | None] = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            parts.append(node if node.name in SHOWN else node.returns)
        elif isinstance(node, ast.arg | ast.AnnAssign):
            parts.append(node.annotation)
            if isinstance(node, ast.AnnAssign) and "TypeAlias" in ast.unparse(node.annotation):
                parts.append(node)
        elif (
            isinstance(node, ast.Raise)
            or (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
            or (isinstance(node, ast.Call) and ast.unparse(node.func).startswith("log."))
            or (isinstance(node, ast.keyword) and node.arg == "strict")
        ):
            parts.append(node)
    return [
        ((n.lineno, n.col_offset), (n.end_lineno, n.end_col_offset))  # type: ignore[attr-defined]
        for n in parts
        if n is not None
    ]


def mutants(text: str) -> Iterator[tuple[str, int, Place]]:
    """Every mutant of a source: the operator, its occurrence, and where."""
    hidden = unseen(text)
    nodes = list(ast_nodes(get_ast(text)))
    for name in OPERATORS:
        operator = get_operator("core/" + name)()
        places = [start for node in nodes for start, _ in operator.mutation_positions(node)]
        for occurrence, start in enumerate(places):
            if not any(low <= start < high for low, high in hidden):
                yield name, occurrence, start


def operators(text: str) -> list[str] | None:
    """The kinds of all binary operators of a source; None where it is none."""
    try:
        return [type(n.op).__name__ for n in ast.walk(ast.parse(text)) if isinstance(n, ast.BinOp | ast.AugAssign)]
    except SyntaxError:
        return None


def changed(text: str, name: str, occurrence: int, line: int) -> dict[str, Any] | None:
    """The mutated source, and the changed line as it was and as it is; None where the operator changes nothing."""
    after = mutate_code(text, get_operator("core/" + name)(), occurrence)
    if after is None or after == text:
        return None
    kinds = operators(after)
    if kinds is None:
        return None  # `while not x := f():` is no Python: any test at all would notice it
    if name.startswith("ReplaceBinaryOperator") and kinds == operators(text):
        return None  # the `*` of a signature is no operator
    pairs = zip(text.splitlines(), after.splitlines(), strict=False)
    where, (old, new) = next(((i, p) for i, p in enumerate(pairs, 1) if p[0] != p[1]), (line, ("", "")))
    return {"line": where, "old": old.strip(), "new": new.strip(), "source": after}


def drawn(seed: int, count: int, only: list[str]) -> list[dict[str, Any]]:
    """`count` mutants, as many of one package as of another."""
    packages: dict[str, list[tuple[Path, int, str, int, Place]]] = {}
    seen: set[Path] = set()  # a file belongs to the first target that names it
    for k, target in enumerate(tomllib.loads((HERE / "targets.toml").read_text())["target"]):
        paths = sorted({p for pattern in target["files"] for p in SOURCE.glob(pattern)} - seen)
        seen |= set(paths)
        if only and not any(target["package"].startswith(name) for name in only):
            continue
        for path in paths:
            found = [(path, k, *mutant) for mutant in mutants(path.read_text())]
            packages.setdefault(target["package"], []).extend(found)
    rng = random.Random(seed)
    out: list[dict[str, Any]] = []
    for i, (package, found) in enumerate(packages.items()):
        share = count * (i + 1) // len(packages) - count * i // len(packages)
        rng.shuffle(found)
        made = 0
        for path, target, name, occurrence, (line, _) in found:
            what = changed(path.read_text(), name, occurrence, line) if made < share else None
            if what is not None:
                file = path.relative_to(SOURCE).as_posix()
                out.append({"package": package, "target": target, "file": file, "operator": name, **what})
                made += 1
        print(f"{package:18s} {made:3d} of {len(found)} mutants", file=sys.stderr)
    return out


if __name__ == "__main__":
    seed, count, file, *only = sys.argv[1:]
    Path(file).write_text(json.dumps(drawn(int(seed), int(count), only), indent=1))
