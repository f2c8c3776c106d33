"""Predicted runs."""

from __future__ import annotations

import html
import json
import operator
import os
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Optional, Tuple, Union

from . import _core
from .order import Order

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd


class Columns:
    """Columns of equal length, as attributes and by name: NumPy arrays over the run's own memory, without a copy.

    They cannot be written. `kind` is bytes of length one: `ops.kind == b"F"`.
    """

    def __init__(self, columns: Dict[str, "np.ndarray[Any, Any]"]) -> None:
        self._columns = columns

    def __getattr__(self, name: str) -> "np.ndarray[Any, Any]":
        if name.startswith("_") or name not in self._columns:
            raise AttributeError(f"no column {name!r}; there are {', '.join(self.__dict__.get('_columns', {}))}")
        return self._columns[name]

    def __getitem__(self, name: str) -> "np.ndarray[Any, Any]":
        return self._columns[name]

    def __len__(self) -> int:
        return len(next(iter(self._columns.values())))

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __contains__(self, name: object) -> bool:
        return name in self._columns

    def __dir__(self) -> List[str]:
        return [*super().__dir__(), *self._columns]

    def keys(self) -> List[str]:
        """The names of the columns."""
        return list(self._columns)

    def to_frame(self) -> "pd.DataFrame":
        """A pandas frame with a row for each entry. It is a copy, and can be changed."""
        import pandas as pd

        frame = pd.DataFrame(self._columns, copy=True)
        frame["kind"] = pd.Categorical(frame["kind"].str.decode("ascii"))
        return frame

    def __repr__(self) -> str:
        return f"<{len(self)} entries: {', '.join(self._columns)}>"


class Run:
    """A predicted run. Times are in seconds, memory is in bytes, unless a name says otherwise."""

    def __init__(self, core: _core.Run) -> None:
        self._core = core
        self._ops: Optional[Columns] = None
        self._transfers: Optional[Columns] = None

    @property
    def name(self) -> str:
        """The scenario's name."""
        return self._core.name

    @property
    def schedule(self) -> str:
        """The schedule's name; that of the file if a file gives the order."""
        return self._core.schedule

    @property
    def stages(self) -> int:
        """The stages of the pipeline."""
        return self._core.stages

    @property
    def micro_batches(self) -> int:
        """The micro-batches in a mini-batch of one copy of the pipeline."""
        return self._core.micro_batches

    @property
    def mini_batches(self) -> int:
        """The mini-batches of the run."""
        return self._core.mini_batches

    @property
    def iteration_time(self) -> float:
        """Seconds for one mini-batch."""
        return self._core.iteration_time

    @property
    def makespan(self) -> float:
        """Seconds for the whole run."""
        return self._core.makespan

    @property
    def throughput(self) -> Optional[float]:
        """Samples per second; None if the run takes no time."""
        return self._core.throughput

    @property
    def bubble(self) -> float:
        """The bubble fraction: idle / (devices x makespan)."""
        return self._core.bubble

    @property
    def bubble_overhead(self) -> float:
        """The other bubble of books: idle / busy."""
        return self._core.bubble_overhead

    @property
    def steady_bubble(self) -> Optional[float]:
        """The bubble of the steady state; None for schedules with a flush."""
        return self._core.steady_bubble

    @property
    def formula_bubble(self) -> Optional[float]:
        """The bubble fraction by the closed form; None if none holds."""
        return self._core.formula_bubble

    @property
    def network_wait(self) -> float:
        """The share of the device time that waits for the network."""
        return self._core.network_wait

    @property
    def likely_iteration_time(self) -> Optional[Tuple[float, float]]:
        """The seconds between which most such runs lie; None where no published run says so."""
        return self._core.likely_iteration_time

    @property
    def peak_memory(self) -> int:
        """Bytes on the device that needs most."""
        return self._core.peak_memory

    @property
    def fits(self) -> Optional[bool]:
        """Whether every device has enough memory; None if the scenario gives no memory size."""
        return self._core.fits

    @property
    def shortage(self) -> str:
        """Which device lacks how much; "" if none does."""
        return self._core.shortage

    @property
    def notes(self) -> List[str]:
        """Remarks, a sentence each."""
        return self._core.notes

    @property
    def estimated(self) -> List[str]:
        """How numbers that were not measured were derived, a sentence each."""
        return self._core.estimated

    @property
    def devices(self) -> List[_core.Device]:
        """Each device: busy, idle, idle_by_cause, peak_memory, memory, peak_op, ..."""
        return self._core.devices

    @property
    def ops(self) -> Columns:
        """The ops: device, stage, micro_batch, kind (F, B, I, W, U), begin_ns, end_ns.

        They stand device by device, and on each device in their order.
        """
        if self._ops is None:
            self._ops = Columns(self._core.ops())
        return self._ops

    @property
    def transfers(self) -> Columns:
        """The transfers between stages: sender, receiver, stage, micro_batch, kind, bytes, begin_ns, end_ns."""
        if self._transfers is None:
            self._transfers = Columns(self._core.transfers())
        return self._transfers

    @property
    def order(self) -> Order:
        """The order of the ops, of one copy of the pipeline and one mini-batch.

        With replicas of a stage, and for asynchronous schedules, it is not the whole order, and cannot be run again.
        """
        return Order.from_csv(self._core.order_csv())

    def to_frame(self) -> "pd.DataFrame":
        """The ops as a pandas frame."""
        return self.ops.to_frame()

    def to_dict(self) -> Dict[str, Any]:
        """All numbers, as `plumbline simulate --json` has them."""
        result: Dict[str, Any] = json.loads(self._core.json())
        return result

    def memory(self, device: int) -> Tuple["np.ndarray[Any, Any]", "np.ndarray[Any, Any]"]:
        """The memory of a device over time: arrays of nanoseconds and of bytes held from then on."""
        if operator.index(device) < 0:
            raise ValueError(f"device {device}: devices are numbered from 0")
        times, held = self._core.memory(operator.index(device))
        return times, held

    def number(self, name: str) -> Optional[float]:
        """A number by its name in JSON, such as "model_flops_utilization"; None if the run has none."""
        return self._core.number(name)

    def meets(self, condition: str) -> bool:
        """Whether a condition holds: "iteration_time_s < 41 ms", "peak_memory_bytes <= 70 GiB"."""
        return self._core.meets(condition)

    def explain(self) -> _core.Explanation:
        """Why it takes its time: critical_path, levers, schedules; `print(run.explain())` tells all."""
        return self._core.explain()

    def why(self, op: str, width: int = 100) -> str:
        """Why an op runs when it does: `print(run.why("1B0"))`."""
        if not isinstance(op, str):
            raise TypeError(f"an op is a text such as '1B0', not {op!r}")
        return self._core.why(op, max(width, 0))

    def text(self, width: int = 100) -> str:
        """The tables and the timeline that `plumbline simulate` prints; width 0 = as wide as they are."""
        return self._core.text(max(width, 0))

    def html(self) -> str:
        """The report as a page for a browser. It loads nothing from elsewhere."""
        return self._core.html()

    def report(self, path: "Union[str, os.PathLike[str]]") -> None:
        """Writes the report."""
        _write(path, self.html())

    def trace(self, path: "Union[str, os.PathLike[str]]") -> None:
        """Writes a trace for Perfetto."""
        _write(path, self._core.chrome_trace())

    def __copy__(self) -> "Run":
        return self  # it does not change

    def __deepcopy__(self, memo: Any) -> "Run":
        return self

    def __reduce__(self) -> Any:
        raise TypeError("a run cannot be pickled; what can is run.to_dict(), run.to_frame(), or one of its numbers")

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return (
            f"<run of {self.name!r}: {self.schedule}, {self.stages} stages, {self.micro_batches} micro-batches: "
            f"{1000 * self.iteration_time:.4g} ms, bubble {100 * self.bubble:.2f} %, "
            f"peak {_size(self.peak_memory)}>"
        )

    def _repr_html_(self) -> str:
        return framed(self.html(), 480 + 24 * min(len(self.devices), 16))


def framed(page: str, height: int) -> str:
    """A page as part of a notebook: in a frame, since it has styles and scripts of its own."""
    return (
        f'<iframe srcdoc="{html.escape(page)}" style="width:100%;height:{height}px;border:0" '
        'title="the report of plumbline"></iframe>'
    )


def _size(count: int) -> str:
    """Bytes with a unit that suits them."""
    return f"{count / 2**30:.2f} GiB" if count >= 2**30 else f"{count / 2**20:.4g} MiB"


def _write(path: "Union[str, os.PathLike[str]]", text: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
