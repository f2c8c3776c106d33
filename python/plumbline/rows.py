"""The rows of sweeps and searches."""

from __future__ import annotations

import math
import os
import sys
import time
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, List, Optional, Union

from . import _core
from .run import _write, framed

if TYPE_CHECKING:
    import pandas as pd

#: True: a bar on stderr; None: a bar if stderr is a terminal or a notebook; a function of two numbers: done, all.
Progress = Union[None, bool, Callable[[int, int], None]]


class Rows:
    """The predictions of a sweep or of a search, the best first."""

    def __init__(self, core: _core.Rows) -> None:
        self._core = core
        self._columns = {name: (unit, values) for name, unit, values in core.columns()}

    @property
    def columns(self) -> List[str]:
        """The names of the columns."""
        return list(self._columns)

    @property
    def done(self) -> int:
        """The predictions that were made, also those of rows that are not kept."""
        return self._core.done

    @property
    def remarks(self) -> List[str]:
        """Remarks on the rows as a whole, a sentence each."""
        return self._core.remarks

    def unit(self, column: str) -> str:
        """"s", "B", "FLOP/s", "1/s", "fraction", "count" or "truth"; "" for texts."""
        unit: str = self._columns[column][0]
        return unit

    def settings(self, row: int) -> List[str]:
        """The settings of a row: `simulate(scenario, *rows.settings(0))` is the best run."""
        return self._core.settings(self._place(row))

    def reason(self, row: int) -> str:
        """Why a row does not fit or cannot run; "" if it can."""
        return self._core.reason(self._place(row))

    def _place(self, row: int) -> int:
        place = row + len(self) if row < 0 else row
        if not 0 <= place < len(self):
            raise IndexError(f"there are {len(self)} rows")
        return place

    def column(self, name: str) -> List[Any]:
        """The values of a column; None where a row has none."""
        unit, values = self._columns[name]
        return [_value(unit, one) for one in values]

    def __len__(self) -> int:
        return len(self._core)

    def __getitem__(self, row: Union[int, str, slice]) -> Any:
        """A row as a dict; of a name, its column; of a slice, several rows."""
        if isinstance(row, str):
            return self.column(row)
        if isinstance(row, slice):
            return [self[one] for one in range(*row.indices(len(self)))]
        place = self._place(row)
        return {name: _value(unit, values[place]) for name, (unit, values) in self._columns.items()}

    def __iter__(self) -> Iterator[Dict[str, Any]]:
        return (self[row] for row in range(len(self)))

    def to_frame(self) -> "pd.DataFrame":
        """A pandas frame. The column `reason` says why a row does not fit or cannot run."""
        import pandas as pd

        data: Dict[str, Any] = {}
        for name, (unit, values) in self._columns.items():
            if unit == "truth":
                data[name] = pd.array([_value(unit, one) for one in values], dtype="boolean")
            elif unit in ("count", "B") and all(one != one or one == int(one) for one in values):
                whole = [None if one != one else int(one) for one in values]
                data[name] = pd.array(whole, dtype="Int64" if None in whole else "int64")
            else:
                data[name] = values
        frame = pd.DataFrame(data)
        frame["reason"] = [self._core.reason(row) for row in range(len(self))]
        return frame

    def text(self, width: int = 100) -> str:
        """The table that the command prints; width 0 = as wide as it is."""
        return self._core.text(max(width, 0))

    def csv(self) -> str:
        """RFC 4180; numbers are not rounded."""
        return self._core.csv()

    def json(self) -> str:
        """As `--json` prints it."""
        return self._core.json()

    def html(self) -> str:
        """A page with charts for a browser. It loads nothing from elsewhere."""
        return self._core.html()

    def report(self, path: "Union[str, os.PathLike[str]]") -> None:
        """Writes the page."""
        _write(path, self.html())

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        bad = sum(1 for row in range(len(self)) if self._core.reason(row))
        return f"<{len(self)} rows of {self.done} predictions{f', {bad} of them do not fit or cannot run' if bad else ''}>"

    def __reduce__(self) -> Any:
        raise TypeError("rows cannot be pickled; what can is rows.to_frame(), rows.csv() or list(rows)")

    def __copy__(self) -> "Rows":
        return self  # they do not change

    def __deepcopy__(self, memo: Any) -> "Rows":
        return self

    def _repr_html_(self) -> str:
        return framed(self.html(), 700)


def _value(unit: str, value: Any) -> Any:
    """A value as Python has it."""
    if unit == "":
        return value
    if math.isnan(value):
        return None
    if unit == "truth":
        return bool(value)
    number = float(value)
    return int(number) if unit in ("count", "B") and math.isfinite(number) and number == int(number) else number


class Bar:
    """A progress bar on stderr, which appears after half a second."""

    def __init__(self, noun: str) -> None:
        self._noun = noun
        self._begin = time.monotonic()
        self._shown = False

    def __call__(self, done: int, count: int) -> None:
        elapsed = time.monotonic() - self._begin
        if elapsed < 0.5:
            return
        self._shown = True
        left = elapsed * (count - done) / done if done else 0
        bar = ("#" * (30 * done // max(count, 1))).ljust(30)
        sys.stderr.write(f"\r[{bar}] {done} of {count} {self._noun}, {left:.0f} s left ")
        sys.stderr.flush()

    def end(self) -> None:
        """Takes the bar away."""
        if self._shown:
            sys.stderr.write("\r" + " " * 78 + "\r")
            sys.stderr.flush()


def bar_of(progress: Progress, noun: str) -> Optional[Callable[[int, int], None]]:
    """The function to be told the progress; None = nobody."""
    if callable(progress):
        return progress
    if progress not in (None, True, False):
        raise TypeError(f"progress is True, False, None or a function of two numbers, not {progress!r}")
    if progress is None:
        in_notebook = "ipykernel" in sys.modules
        progress = in_notebook or bool(getattr(sys.stderr, "isatty", lambda: False)())
    return Bar(noun) if progress else None
