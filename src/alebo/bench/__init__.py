"""The paper's experiments: problems, one run, sweeps, tables and figures. Uses only the package's door."""

from __future__ import annotations

from .labels import VARIANTS as VARIANTS
from .labels import Label as Label
from .problems import PAPER as PAPER
from .problems import PROBLEMS as PROBLEMS
from .problems import Problem as Problem
from .problems import problem as problem
from .replication import replication as replication
