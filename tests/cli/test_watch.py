"""`alebo report --watch` as a command: it prints its address, answers there, and ends with the command."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

import alebo
from tests.conftest import require_module


def test_watch_answers_until_it_is_stopped(tmp_path: Path) -> None:
    require_module("plotly", "plot")
    space = alebo.Space.from_bounds([(0, 1)] * 5)
    with alebo.Study.create(tmp_path / "s.log", space, alebo.Minimize("v"), method=alebo.methods.Sobol()) as study:
        study.tell(study.ask()[0].number, 0.25)
    command = [sys.executable, "-c", "from alebo.cli import main; main()", "report", str(tmp_path / "s.log"), "--watch"]
    env = {**os.environ, "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
    try:
        assert process.stdout is not None
        found = re.search(r"http://127\.0\.0\.1:\d+/\S+/", process.stdout.readline())
        assert found is not None, process.communicate()
        with urllib.request.urlopen(found.group(), timeout=60) as answer:
            assert b"v = 0.25" in answer.read()
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
        with pytest.raises(urllib.error.URLError):
            urllib.request.urlopen(found.group(), timeout=5)
    finally:
        process.kill()
        process.communicate()
