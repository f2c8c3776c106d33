"""Scenarios and settings, from Python's values to those of the command line."""

from __future__ import annotations

import json
import os
from typing import Any, Dict, Iterable, List, Mapping, Sequence, Union

from . import _core
from .order import Order

#: A file's name, or a scenario as a dict.
ScenarioLike = Union[str, "os.PathLike[str]", Mapping[str, Any]]


def input_of(scenario: ScenarioLike) -> _core.Input:
    """What the core reads. Files that a dict names are relative to the current folder; a key that is None is absent."""
    if isinstance(scenario, Mapping):
        return _core.Input.of_text(json.dumps(_given(scenario), indent=1, default=_plain), "<dict>", "")
    return _core.Input(os.fspath(scenario))


def _given(value: Any) -> Any:
    """The value without keys that are None."""
    if isinstance(value, Mapping):
        return {key: _given(one) for key, one in value.items() if one is not None}
    return value


def _plain(value: Any) -> Any:
    """NumPy's numbers and arrays as Python's."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"a scenario cannot have a value of type {type(value).__name__}: {value!r}")


def text_of(value: Any) -> str:
    """A value as YAML on one line."""
    if isinstance(value, Order):
        return value._file()
    if isinstance(value, os.PathLike):
        return str(os.fspath(value))
    if isinstance(value, str):
        return value
    return json.dumps(value, default=_plain)


def _flat(prefix: str, value: Any) -> Iterable[Any]:
    """(key, value) pairs of nested dicts, with dotted keys."""
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from _flat(f"{prefix}.{key}", inner)
    else:
        yield prefix, value


def _named(key: str, value: Any) -> Dict[str, Any]:
    """One keyword argument as dotted keys. `schedule="1f1b"` is short for its name, an Order for its file."""
    key = key.replace("__", ".")
    if key == "schedule" and not isinstance(value, Mapping):
        orders = value if isinstance(value, (list, tuple)) else [value]
        if any(isinstance(one, Order) for one in orders):
            return {"schedule.file": value}
        return {"schedule.name": value}
    return dict(_flat(key, value))


def settings_of(given: Sequence[str], named: Mapping[str, Any]) -> List[str]:
    """`key=value` texts of both kinds of arguments, for one prediction."""
    texts = list(given)
    for keyword, value in named.items():
        texts += [f"{key}={text_of(one)}" for key, one in _named(keyword, value).items()]
    return texts


def _axis(values: Iterable[Any]) -> str:
    """Several values, which commas separate."""
    texts = [text_of(value) for value in values]
    if not texts:
        raise ValueError("a key has an empty list of values")
    return ",".join(json.dumps(text) if "," in text and text[0] not in "[{\"'" else text for text in texts)


def axes_of(given: Sequence[str], named: Mapping[str, Any]) -> List[str]:
    """The same for a sweep or a search: a list, a tuple or a range is the values of a key."""
    texts = list(given)
    for keyword, value in named.items():
        for key, one in _named(keyword, value).items():
            several = isinstance(one, (list, tuple, range)) or getattr(one, "ndim", 0) > 0  # or an array
            texts.append(f"{key}={_axis(one) if several else text_of(one)}")
    return texts
