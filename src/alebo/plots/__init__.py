"""Figures of a run: one function for each, which returns a Plotly figure.

>>> import alebo
>>> opt = alebo.Optimizer(alebo.Space.from_bounds([(0, 1)] * 5), alebo.Minimize("loss"), method=alebo.methods.Sobol())
>>> for _ in range(3):
...     trial = opt.ask()[0]
...     _ = opt.tell(trial.number, sum(trial.params.values()))
>>> from alebo import plots
>>> plots.trace(opt).layout.yaxis.title.text
'loss'

A figure is drawn of an `Optimizer` or a `Study`. Those that need a model accept the `Diagnosis` of the run, so that it is
fitted once. The numbers behind a figure come from a pure function of `alebo.plots.data`.
"""

from .data import arms_data as arms_data
from .data import constraints_data as constraints_data
from .data import convergence_data as convergence_data
from .data import dimension_data as dimension_data
from .data import fit_data as fit_data
from .data import front_data as front_data
from .data import hypervolume_data as hypervolume_data
from .data import parameters_data as parameters_data
from .data import trace_data as trace_data
from .model import contour as contour
from .model import importance as importance
from .model import predicted as predicted
from .model import slices as slices
from .named import contour_data as contour_data
from .named import slice_data as slice_data
from .objectives import front as front
from .objectives import hypervolume as hypervolume
from .parallel import parallel as parallel
from .parallel import parallel_data as parallel_data
from .run import constraint as constraint
from .run import shares as shares
from .run import timeline as timeline
from .run import trace as trace
