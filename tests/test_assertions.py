"""Every test can fail: it asserts something itself, or through one of the helpers named here."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent
# functions of the tests that assert, and scikit-learn's `check`
HELPERS = ("refused", "valid", "check", "laws.")


def asserts(function: ast.FunctionDef) -> bool:
    """Whether a function has an assertion, or calls what raises where something is wrong."""
    for node in ast.walk(function):
        if isinstance(node, ast.Assert):
            return True
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            last = name.rsplit(".", 1)[-1]
            if last in ("raises", "warns", "fail") or last.startswith("assert_") or name.startswith(HELPERS):
                return True
    return False


def all_tests() -> Iterator[tuple[str, ast.FunctionDef]]:
    for path in sorted(HERE.rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                yield f"{path.relative_to(HERE)}::{node.name}", node


def test_no_test_only_runs() -> None:
    found = list(all_tests())
    assert len(found) > 1000
    assert [name for name, node in found if not asserts(node)] == []


def test_what_counts_as_an_assertion() -> None:
    def judged(body: str) -> bool:
        function = ast.parse(f"def test_it():\n    {body}").body[0]
        assert isinstance(function, ast.FunctionDef)
        return asserts(function)

    good = ["assert x", "pytest.raises(E)", "np.testing.assert_allclose(a, b)", "refused(x)", "laws.obeys(m)"]
    assert [judged(body) for body in good] == [True] * len(good)
    assert not judged("run(x); x == y")
