"""Is it working? The numbers about a run and its model, one file for each question, and verdicts in plain words.

| file | question |
|---|---|
| `models.py` | Which model does the method use, and what does it see? |
| `fit.py` | Does the model predict points that it has not seen? |
| `embedding.py` | Is the linear embedding large enough? |
| `importance.py` | Along which parameters does the embedding's model change? |
| `sparse.py` | Which parameters does a sparse model of all parameters need? |
| `progress.py` | Do evaluations succeed, and does the best value still improve? |
| `verdict.py` | What follows from the numbers? |
"""

from .diagnosis import Diagnosis as Diagnosis
from .diagnosis import diagnose as diagnose
from .diagnosis import importances as importances
from .embedding import Geometry as Geometry
from .embedding import boundary_share as boundary_share
from .embedding import effective_rank as effective_rank
from .embedding import geometry as geometry
from .embedding import outward_pull as outward_pull
from .fit import Fit as Fit
from .fit import cross_validate as cross_validate
from .importance import Importance as Importance
from .importance import slope_importance as slope_importance
from .importance import slopes as slopes
from .models import fit_models as fit_models
from .models import recovered as recovered
from .sparse import SparseModel as SparseModel
from .sparse import sparse_model as sparse_model
from .verdict import Verdict as Verdict
from .verdict import verdicts as verdicts
