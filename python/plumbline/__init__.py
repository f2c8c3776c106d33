"""Predicts how pipeline-parallel training behaves, before anyone pays for the GPUs.

>>> import plumbline
>>> run = plumbline.simulate("examples/four-stages.yaml", schedule="gpipe", schedule__micro_batches=4)
>>> round(1000 * run.iteration_time, 3), round(run.bubble, 4)
(21.0, 0.4286)

A scenario is the name of a YAML file, the name of a model's config.json, or a dict with the same content. Settings are
keyword arguments or texts, with the names of docs/reference/keys.md:

    simulate("s.yaml", "schedule.micro_batches=8")
    simulate("s.yaml", schedule__micro_batches=8)
    simulate("s.yaml", schedule={"name": "gpipe", "micro_batches": 8})
    simulate("s.yaml", **{"schedule.micro_batches": 8})

`schedule="gpipe"` is short for its name. Wrong input raises `Error`, with file, line and help.
"""

from __future__ import annotations

import re
from typing import Any, Iterable, List, Optional, Union

from . import _core
from ._core import FoundOrder, Plan, Profile, Validation
from ._errors import Error, FileError, InfeasibleError, InputError, NoDeviceError, Problem
from ._settings import ScenarioLike, axes_of, count_of, input_of, settings_of
from .measure import calibrate, validate
from .order import Order
from .rows import Bar, Progress, Rows, bar_of
from .run import Columns, Run

__version__: str = _core.__version__

__all__ = [
    "Columns",
    "Error",
    "FileError",
    "FoundOrder",
    "InfeasibleError",
    "InputError",
    "NoDeviceError",
    "Order",
    "Plan",
    "Problem",
    "Profile",
    "Rows",
    "Run",
    "Validation",
    "calibrate",
    "expect",
    "find_order",
    "plan",
    "search",
    "simulate",
    "sweep",
    "validate",
]


def _texts(given: Union[str, Iterable[str]]) -> List[str]:
    """One text, or several."""
    return [given] if isinstance(given, str) else list(given)


def simulate(scenario: ScenarioLike, *settings: str, **keys: Any) -> Run:
    """Predicts a run. One that does not fit the memory is no error: see `Run.fits`.

    Raises InputError for a wrong scenario or setting, FileError for a file that cannot be read, InfeasibleError for an
    order that cannot run.
    """
    return Run(_core.predict(_core.load(input_of(scenario), settings_of(settings, keys))))


def sweep(
    scenario: ScenarioLike,
    *settings: str,
    objective: str = "throughput",
    where: Union[str, Iterable[str]] = (),
    top: int = 0,
    pareto: str = "",
    threads: int = 0,
    progress: Progress = None,
    **keys: Any,
) -> Rows:
    """Predicts every combination: lists, tuples and ranges are the values of a key.

    objective: throughput, per-device, memory, bubble, cost, days, energy or goodput. where: conditions, such as
    "peak_memory_bytes < 80 GB". top: how many rows are kept; 0 = all. pareto: "memory", or "cost,days": only rows
    that no other beats. threads: 0 = one for each core. Ctrl-C stops it.
    """
    asked, texts = input_of(scenario), axes_of(settings, keys)
    bar = bar_of(progress, "points")
    try:
        return Rows(_core.sweep(asked, texts, objective, _texts(where), count_of("top", top), pareto, count_of("threads", threads), bar))
    finally:
        if isinstance(bar, Bar):
            bar.end()


def search(
    scenario: ScenarioLike,
    *settings: str,
    objective: str = "throughput",
    where: Union[str, Iterable[str]] = (),
    top: int = 10,
    pareto: str = "",
    distinct: bool = False,
    free: bool = False,
    threads: int = 0,
    progress: Progress = None,
    **keys: Any,
) -> Rows:
    """Predicts every layout over the scenario's devices: all values of the keys that it leaves open.

    free: leaves open the keys of the layout that it gives, too. distinct: only the best layout of each combination of
    tensor, context, expert and pipeline sizes. The other options are those of `sweep`.
    """
    asked, texts = input_of(scenario), axes_of(settings, keys)
    bar = bar_of(progress, "layouts")
    try:
        return Rows(
            _core.search(asked, texts, objective, _texts(where), count_of("top", top), pareto, distinct, free, count_of("threads", threads), bar)
        )
    finally:
        if isinstance(bar, Bar):
            bar.end()


def plan(
    scenario: ScenarioLike,
    *settings: str,
    straight: bool = False,
    devices_at_most: int = 0,
    candidates: int = 0,
    **keys: Any,
) -> Plan:
    """Chooses stages, replicas, devices and warm-ups, whatever partition the scenario names.

    straight: one replica for each stage. devices_at_most: 0 = all. candidates: how many plans are simulated; 0 = as
    the scenario says. `plan.yaml` is a plan section, for `plan.file`.
    """
    loaded = _core.load(input_of(scenario), settings_of(settings, keys))
    return _core.plan(
        loaded, straight, count_of("devices_at_most", devices_at_most), count_of("candidates", candidates)
    )


def find_order(scenario: ScenarioLike, *settings: str, **keys: Any) -> FoundOrder:
    """Finds the best order for the scenario's costs, and how far it can be from the optimum.

    `Order.from_csv(found.csv)` is the order; `found.gap` = 0.02 means at most 2 % above any order.
    """
    return _core.order(input_of(scenario), settings_of(settings, keys))


def expect(
    scenario: ScenarioLike,
    *conditions: str,
    settings: Optional[Union[str, Iterable[str]]] = None,
    **keys: Any,
) -> Run:
    """For tests: predicts a run, and raises AssertionError if it does not fit or does not meet all conditions.

    Whether it fits is known only if the scenario gives a memory size.

    >>> run = expect("examples/four-stages.yaml", "iteration_time_s <= 33 ms", "peak_memory_bytes < 1 GiB")
    """
    run = simulate(scenario, *_texts(settings or ()), **keys)
    missed = []
    for condition in conditions:
        if not run.meets(condition):
            name = re.match(r"\s*(\w*)", condition)
            value = run.number(name.group(1)) if name else None
            missed.append(f"{condition} does not hold: " + ("the run has none" if value is None else f"it is {value:.6g}"))
    if run.fits is False:
        missed.append(run.shortage)
    if missed:
        raise AssertionError(f"{run!r}: " + "; ".join(missed))
    return run
