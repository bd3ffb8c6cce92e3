"""Runs that survive: a study that is written as it goes, and `run`, which evaluates its trials and resumes."""

from __future__ import annotations

from .evaluate import run as run
from .study import Study as Study
