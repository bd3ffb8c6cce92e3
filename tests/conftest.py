"""What all tests share: seeded hypothesis, one Torch thread, and how a test says that a part is missing."""

from __future__ import annotations

import os
import signal
from collections.abc import Generator
from importlib.util import find_spec

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before Torch and BLAS are loaded: two workers share two cores

import pytest
from hypothesis import HealthCheck, settings

# Under `nohup`, or in the background of a shell, these are ignored, and programs that tests start would inherit that.
for _number, _default in (
    (signal.SIGINT, signal.default_int_handler),
    (getattr(signal, "SIGHUP", None), signal.SIG_DFL),
):
    if _number is not None and signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, _default)

settings.register_profile(
    "alebo",
    deadline=None,
    derandomize=True,  # the same examples every time: a test that passes today passes tomorrow
    max_examples=50,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("alebo")


OUTSIDE_DEV = ("mopta", "ax", "mlflow", "peers")  # extras that `make test` does not install; their tests are skipped


def require_part(name: str, present: bool, hint: str, *, in_dev: bool = True) -> None:
    """Skip the test with a named reason unless `present`; under ALEBO_REQUIRE_ALL=1 a missing part is a failure.

    `name` is the part as a person would say it ("PostgreSQL"), `hint` the line that installs it. A part that the extra
    `dev` does not bring (`in_dev=False`) is skipped in any case.
    """
    if present:
        return
    reason = f"This test needs {name}, which is not here. {hint}"
    if in_dev and os.environ.get("ALEBO_REQUIRE_ALL") == "1":
        pytest.fail(reason + " (ALEBO_REQUIRE_ALL=1: a missing part is a failure.)", pytrace=False)
    pytest.skip(reason, allow_module_level=True)


@pytest.fixture(name="require_part")
def _require_part() -> object:
    """The same, for tests that prefer a fixture to `from tests.conftest import require_part`."""
    return require_part


def require_module(module: str, extra: str) -> None:
    """`require_part` for an optional Python library, which `pip install "alebo[extra]"` brings."""
    present = find_spec(module) is not None
    require_part(module, present, f'Install it: pip install "alebo[{extra}]".', in_dev=extra not in OUTSIDE_DEV)


def _missing_is_a_failure(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Under ALEBO_REQUIRE_ALL=1, what `pytest.importorskip` skipped has failed."""
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
    if os.environ.get("ALEBO_REQUIRE_ALL") == "1" and report.skipped and "could not import" in reason:
        report.outcome = "failed"
        report.longrepr = f"{reason} (ALEBO_REQUIRE_ALL=1: a missing part is a failure.)"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    _missing_is_a_failure(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    _missing_is_a_failure(report)
    return report


@pytest.fixture(autouse=True, scope="session")
def _one_thread() -> None:
    import torch

    torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _short_chains(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A chain that starts from nothing burns in for 25 transitions, not 100: most of the time of a short run of ALEBO.

    Tests of the model itself, of recorded runs and of what the documents promise have the marker `full_chains`.
    """
    if request.node.get_closest_marker("full_chains") is None:
        from alebo.models.mahalanobis import chains

        monkeypatch.setattr(chains, "BURN_IN", 25)
