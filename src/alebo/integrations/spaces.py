"""Spaces of other libraries to ours and back: Optuna's distributions and ConfigSpace. What cannot be said is refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .._errors import InputError, MissingPartError
from ..space import Categorical, Fixed, Float, Int, Parameter, Space

if TYPE_CHECKING:
    from ConfigSpace import ConfigurationSpace
    from optuna.distributions import BaseDistribution


def from_optuna(distributions: Mapping[str, BaseDistribution]) -> Space:
    """The Space of these Optuna distributions, in their order; one with a single value becomes Fixed.

    >>> from optuna.distributions import FloatDistribution, IntDistribution
    >>> from_optuna({"lr": FloatDistribution(1e-5, 1, log=True), "layers": IntDistribution(1, 9)}).names
    ('lr', 'layers')
    """
    return Space([from_distribution(name, d) for name, d in distributions.items()])


def from_distribution(name: str, d: BaseDistribution) -> Parameter:
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if isinstance(d, CategoricalDistribution):
        return Categorical(name, d.choices) if len(d.choices) > 1 else Fixed(name, d.choices[0])
    if not isinstance(d, FloatDistribution | IntDistribution):
        raise InputError(f"A distribution of Optuna is Float, Int or Categorical; {name!r} is {type(d).__name__}.")
    if d.single():
        return Fixed(name, d.low)
    if isinstance(d, FloatDistribution):
        return Float(name, d.low, d.high, log=d.log, step=d.step)
    if d.step == 1:
        return Int(name, d.low, d.high, log=d.log)
    raise InputError(
        f"An Int of a Space has no steps; {name!r} goes from {d.low} to {d.high} by {d.step}. Use an Int that counts the steps, "
        "or give the distributions to the EmbeddingSampler, which counts them for you."
    )


def to_optuna(space: Space) -> dict[str, BaseDistribution]:
    """Optuna's distributions of this Space, in its order; a Fixed parameter is a category of one choice."""
    try:
        from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
    except ImportError:
        raise MissingPartError('Optuna is not installed. Run: pip install "optuna>=5" "pebble>=5.1"') from None
    _refuse_constraints(space, "Optuna's distributions")
    out: dict[str, BaseDistribution] = {}
    for p in space.parameters:
        if isinstance(p, Float):
            out[p.name] = FloatDistribution(p.low, p.high, log=p.log, step=p.step)
        elif isinstance(p, Int):
            out[p.name] = IntDistribution(p.low, p.high, log=p.log)
        else:
            out[p.name] = CategoricalDistribution(p.choices if isinstance(p, Categorical) else (p.value,))
    return out


def from_configspace(configspace: ConfigurationSpace) -> Space:
    """The Space of a ConfigurationSpace, in its order; conditions, forbidden clauses and priors are refused."""
    try:
        import ConfigSpace as cs
    except ImportError:
        raise MissingPartError('ConfigSpace is not installed. Run: pip install "alebo[configspace]"') from None
    if configspace.conditions or configspace.forbidden_clauses:
        raise InputError(
            f"A Space has no conditions or forbidden clauses; this one has {len(configspace.conditions)} and "
            f"{len(configspace.forbidden_clauses)}. Remove them, or let the function return a bad value there."
        )
    out: list[Parameter] = []
    for name, h in configspace.items():
        if isinstance(h, cs.UniformFloatHyperparameter):
            out.append(Float(name, float(h.lower), float(h.upper), log=bool(h.log)))
        elif isinstance(h, cs.UniformIntegerHyperparameter):
            out.append(Int(name, int(h.lower), int(h.upper), log=bool(h.log)))
        elif isinstance(h, cs.CategoricalHyperparameter):
            out.append(
                Categorical(name, [_python(c) for c in h.choices])
                if len(h.choices) > 1
                else Fixed(name, _python(h.choices[0]))
            )
        elif isinstance(h, cs.Constant):
            out.append(Fixed(name, _python(h.value)))
        else:
            raise InputError(
                f"A Space has uniform numbers, categories and constants; {name!r} is a {type(h).__name__}. Replace it "
                "by one of these."
            )
    return Space(out)


def to_configspace(space: Space, *, seed: int | None = None) -> ConfigurationSpace:
    """The ConfigurationSpace of this Space, which sorts by name and rounds bounds to 13 digits; Fixed is a Constant.

    ConfigSpace has no steps and digits: what it samples is not rounded.
    """
    try:
        import ConfigSpace as cs
    except ImportError:
        raise MissingPartError('ConfigSpace is not installed. Run: pip install "alebo[configspace]"') from None
    _refuse_constraints(space, "ConfigSpace")
    out = cs.ConfigurationSpace(seed=seed)
    for p in space.parameters:
        if isinstance(p, Float):
            out.add(cs.UniformFloatHyperparameter(p.name, p.low, p.high, log=p.log))
        elif isinstance(p, Int):
            out.add(cs.UniformIntegerHyperparameter(p.name, p.low, p.high, log=p.log))
        elif isinstance(p, Categorical):
            out.add(cs.CategoricalHyperparameter(p.name, list(p.choices)))
        else:
            out.add(cs.Constant(p.name, p.value))
    return out


def _python(value: Any) -> Any:
    """A plain value where NumPy wrapped one."""
    return value.item() if hasattr(value, "item") else value


def _refuse_constraints(space: Space, library: str) -> None:
    if space.constraints:
        raise InputError(
            f"{library} cannot say a LinearConstraint; this space has {len(space.constraints)}. Leave them out, or keep "
            "the Space."
        )
