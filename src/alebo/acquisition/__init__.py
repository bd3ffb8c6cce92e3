"""Choosing the next points: what is worth evaluating (`functions`, `wrappers`), and where it is largest (`maximize`)."""

from ._climb import climb as climb
from ._quick import Quick as Quick
from ._quick import quick as quick
from .functions import Acquisition as Acquisition
from .functions import LogEI as LogEI
from .functions import NoisyLogEI as NoisyLogEI
from .functions import OverMarginals as OverMarginals
from .functions import log_ei as log_ei
from .functions import value_and_gradient as value_and_gradient
from .hypervolume import NoisyLogEHVI as NoisyLogEHVI
from .maximize import candidates as candidates
from .maximize import climb_in_box as climb_in_box
from .maximize import evaluate as evaluate
from .maximize import maximise_in_box as maximise_in_box
from .maximize import perturbed as perturbed
from .maximize import propose as propose
from .maximize import scatter as scatter
from .maximize import swiftly as swiftly
from .wrappers import PerCost as PerCost
from .wrappers import PerLook as PerLook
from .wrappers import Through as Through
from .wrappers import Unseen as Unseen
from .wrappers import at_target as at_target
