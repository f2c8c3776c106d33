"""Scenarios and settings, from Python's values to those of the command line."""

from __future__ import annotations

import json
import math
import operator
import os
import re
from typing import Any, Dict, Iterable, List, Mapping, Sequence, Tuple, Union

from . import _core
from .order import Order

#: A file's name, or a scenario as a dict.
ScenarioLike = Union[str, "os.PathLike[str]", Mapping[str, Any]]

# What a file's order leaves no choice of. A key that is null is taken out.
_DECIDED_BY_A_FILE = ("schedule.placement", "schedule.in_flight", "schedule.effort", "schedule.chunks")


def input_of(scenario: ScenarioLike) -> _core.Input:
    """What the core reads.

    Files that a dict names are relative to the current folder; a key that is None is absent.
    """
    if isinstance(scenario, Mapping):
        given = _given(scenario)
        if isinstance(given.get("schedule"), (str, Order)):
            kind = "file" if isinstance(given["schedule"], Order) else "name"
            given["schedule"] = {kind: given["schedule"]}
        text = json.dumps(given, indent=1, default=_plain, ensure_ascii=False)
        return _core.Input.of_text(text, "<dict>", "")
    if not isinstance(scenario, (str, os.PathLike)):
        raise TypeError(f"a scenario is the name of a file or a dict, not {type(scenario).__name__}")
    return _core.Input(str(os.fspath(scenario)))


def _given(value: Any) -> Any:
    """The value without keys that are None, and with whole numbers as such."""
    if isinstance(value, Mapping):
        return {key: _given(one) for key, one in value.items() if one is not None}
    if isinstance(value, (list, tuple)):
        return [_given(one) for one in value]
    return int(value) if _is_whole(value) else value


def _is_whole(value: Any) -> bool:
    return isinstance(value, float) and math.isfinite(value) and value == int(value)


def _plain(value: Any) -> Any:
    """Values of other libraries as Python's."""
    if isinstance(value, Order):
        return value._file()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, range):
        return list(value)
    if hasattr(value, "tolist"):  # NumPy
        return _given(value.tolist())
    raise TypeError(f"a value of a scenario cannot be of type {type(value).__name__}: {value!r}")


def text_of(value: Any) -> str:
    """A value as YAML on one line."""
    if isinstance(value, (Order, os.PathLike)):
        return str(_plain(value))
    if isinstance(value, str):
        return value
    return json.dumps(_given(value), default=_plain, ensure_ascii=False)


def _flat(prefix: str, value: Any) -> Iterable[Tuple[str, Any]]:
    """(key, value) pairs of nested dicts, with dotted keys."""
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from _flat(f"{prefix}.{key}", inner)
    else:
        yield prefix, value


def _named(keys: Mapping[str, Any]) -> Dict[str, Any]:
    """Keyword arguments as dotted keys. `schedule="1f1b"` is short for its name, an Order for its file."""
    named: Dict[str, Any] = {}
    for keyword, value in keys.items():
        key = keyword.replace("__", ".")
        if key == "schedule" and not isinstance(value, Mapping):
            orders = [isinstance(one, Order) for one in _values(value)]
            if any(orders) and not all(orders):
                raise TypeError("schedule has names and orders: sweep the names, and then the orders")
            named["schedule.file" if any(orders) else "schedule.name"] = value
        else:
            named.update(_flat(key, value))
    if any(isinstance(one, Order) for one in _values(named.get("schedule.file"))):
        for key in _DECIDED_BY_A_FILE:
            named.setdefault(key, None)
    return named


def _values(value: Any) -> Sequence[Any]:
    """The values of a key: those of a list, a tuple, a range or an array; else the one."""
    if isinstance(value, (list, tuple, range)):
        return value
    if getattr(value, "ndim", 0) == 1:
        values: List[Any] = list(value.tolist())
        return values
    return [value]


def _setting(key: str, value: Any, text: Any) -> str:
    try:
        return f"{key}={text(value)}"
    except TypeError as error:
        raise TypeError(f"{key}: {error}") from None
    except ValueError as error:
        raise ValueError(f"{key}: {error}") from None


def _checked(given: Sequence[str]) -> List[str]:
    """The settings that are texts."""
    for one in given:
        if not isinstance(one, str):
            raise TypeError(f"a setting is a text such as 'schedule.micro_batches=8', not {one!r}")
    return list(given)


def settings_of(given: Sequence[str], keys: Mapping[str, Any]) -> List[str]:
    """`key=value` texts of both kinds of arguments, for one prediction."""
    return _checked(given) + [_setting(key, value, text_of) for key, value in _named(keys).items()]


def _axis(value: Any) -> str:
    """The values of a key, which commas separate."""
    if isinstance(value, range) and value.step > 0 and len(value) > 1:
        return f"range({value.start}, {value.stop}, {value.step})"
    if isinstance(value, (set, frozenset)) or hasattr(value, "__next__"):
        raise TypeError("the values of a key stand in a list, a tuple or a range")
    values = _values(value)
    if not len(values):
        raise ValueError("an empty list of values")
    return ",".join(_quoted(one) for one in values)


def _quoted(value: Any) -> str:
    """One of several values: a text that is not plain stands in quotes."""
    text = text_of(value)
    if isinstance(value, (str, Order, os.PathLike)) and not re.fullmatch(r"[\w.+/ -]+", text):
        return json.dumps(text, ensure_ascii=False)
    return text


def axes_of(given: Sequence[str], keys: Mapping[str, Any]) -> List[str]:
    """The same for a sweep or a search: a list, a tuple, a range or an array is the values of a key.

    A text may have several, too, as on the command line: "4,8".
    """
    texts = _checked(given)
    for key, value in _named(keys).items():
        texts.append(_setting(key, value, text_of if isinstance(value, str) else _axis))
    return texts


def count_of(name: str, value: int) -> int:
    """A whole number that fits into 31 bits."""
    try:
        count = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is a whole number, not {value!r}") from None
    if not 0 <= count < 2**31:
        raise ValueError(f"{name} is {count}; it is at least 0, and less than 2^31")
    return count
