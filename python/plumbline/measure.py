"""Real runs beside their predictions, and layers timed on this machine."""

from __future__ import annotations

from typing import Any, Iterable, Sequence, Union

from . import _core
from ._settings import ScenarioLike, axes_of, count_of, input_of
from .rows import Bar, Progress, bar_of


def _backend(name: str, seed: int, one_gpu: bool = False, graphs: bool = True, nccl: bool = False) -> _core.Backend:
    if not isinstance(name, str):
        raise TypeError(f"backend is a text such as 'synthetic', not {name!r}")
    backend = _core.Backend()
    backend.name, backend.seed = name, count_of("seed", seed)
    backend.one_gpu, backend.graphs, backend.nccl = bool(one_gpu), bool(graphs), bool(nccl)
    return backend


def _real(name: str, value: float) -> float:
    """A number."""
    try:
        return float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name} is a number, not {value!r}") from None


def validate(
    scenarios: "Union[ScenarioLike, Sequence[ScenarioLike]]",
    *settings: str,
    backend: str = "cpu",
    iterations: int = 20,
    warm_up: int = 3,
    rounds: int = 1,
    tolerance: float = 0.05,
    recalibrate: bool = False,
    seed: int = 1,
    one_gpu: bool = False,
    graphs: bool = True,
    nccl: bool = False,
    progress: Progress = None,
    **keys: Any,
) -> _core.Validation:
    """Runs a scenario for real, and compares it with its prediction; a list of scenarios, one after the other.

    backend: synthetic (threads that wait), cpu or cuda. Lists, tuples and ranges are the values of a key, as in `sweep`:
    each combination is a run. iterations: clean ones of each run. rounds: in each, every run has its part of the
    iterations. tolerance: the relative error that still passes. recalibrate: times the layers again between the rounds.
    one_gpu, graphs, nccl: for cuda. Ctrl-C ends the runs; an order that is searched before them ends by itself.

    Raises NoDeviceError if this build or this machine has no such backend.
    """
    limits = _core.ValidationLimits()
    limits.iterations, limits.warm_up = count_of("iterations", iterations), count_of("warm_up", warm_up)
    limits.rounds, limits.tolerance = count_of("rounds", rounds), _real("tolerance", tolerance)
    limits.recalibrate = bool(recalibrate)
    asked = [input_of(one) for one in (scenarios if isinstance(scenarios, (list, tuple)) else [scenarios])]
    bar = bar_of(progress, "runs")
    try:
        return _core.validate(
            asked, axes_of(settings, keys), _backend(backend, seed, one_gpu, graphs, nccl), limits, bar
        )
    finally:
        if isinstance(bar, Bar):
            bar.end()


def calibrate(
    network: str,
    *,
    backend: str = "cpu",
    batches: Iterable[int] = (8,),
    devices: int = 1,
    copies: int = 1,
    optimizer: str = "sgd",
    min_seconds: float = 1,
    max_seconds: float = 20,
    seed: int = 1,
    progress: Progress = None,
) -> _core.Profile:
    """Times the layers of a network file on devices of this machine.

    batches: samples of a micro-batch; each is measured. devices: how many work at the same time; copies: how many hold
    the same part. optimizer: sgd or adam. min_seconds, max_seconds: for each batch; between the two the noise decides.
    Ctrl-C stops it. `profile.yaml` is the file, for `model.profile`.
    """
    if optimizer not in ("sgd", "adam"):
        raise ValueError(f"optimizer is 'sgd' or 'adam', not {optimizer!r}")
    limits = _core.CalibrationLimits()
    limits.batches = [count_of("batches", one) for one in batches]
    limits.devices, limits.copies = count_of("devices", devices), count_of("copies", copies)
    limits.adam = optimizer == "adam"
    limits.min_seconds, limits.max_seconds = _real("min_seconds", min_seconds), _real("max_seconds", max_seconds)
    bar = bar_of(progress, "% of the time")
    try:
        return _core.calibrate(str(network), _backend(backend, seed), limits, bar)
    finally:
        if isinstance(bar, Bar):
            bar.end()
