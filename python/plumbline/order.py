"""Orders of ops."""

from __future__ import annotations

import os
import re
import tempfile
from typing import Any, List, Sequence, Tuple, Union

#: An op: "0F3", or (stage, "F", micro-batch).
OpLike = Union[str, Tuple[int, str, int]]

_OP = re.compile(r"\d+[FBIW]\d+$|\(.*\)OVERLAP_F_B$|\d*(SEND|RECV)_[FB]\d+$|\d+(UNSHARD|RESHARD|REDUCE_GRAD)$")


class Order:
    """The ops of each device, in the order in which it runs them.

    >>> order = Order([["0F0", "0F1", "0B0", "0B1"], ["1F0", "1B0", "1F1", "1B1"]])
    >>> print(order.to_csv(), end="")
    0F0,0F1,0B0,0B1
    1F0,1B0,1F1,1B1

    An op is a stage, one of F (forward), B (backward), I (gradient of the input) and W (of the weights), and a
    micro-batch. Whether the order can run is checked when it is simulated: `simulate(scenario, schedule=order)`.
    """

    def __init__(self, devices: Sequence[Sequence[OpLike]]) -> None:
        self.devices: List[List[str]] = []
        for number, ops in enumerate(devices):
            row = [op if isinstance(op, str) else "{}{}{}".format(*op) for op in ops]
            for op in row:
                if not _OP.match(op):
                    raise ValueError(f"device {number}: {op!r} is no op; one is '0F3'")
            self.devices.append(row)
        if not self.devices:
            raise ValueError("an order needs at least one device")

    @classmethod
    def from_csv(cls, text: str) -> "Order":
        """Reads the text of PyTorch's CSV: a row for each device, an op in each cell; empty cells are left out."""
        return cls([[cell.strip() for cell in row.split(",") if cell.strip()] for row in text.splitlines() if row.strip()])

    @classmethod
    def load(cls, path: "Union[str, os.PathLike[str]]") -> "Order":
        """Reads PyTorch's CSV from a file."""
        with open(path, encoding="utf-8") as file:
            return cls.from_csv(file.read())

    def to_csv(self) -> str:
        """The text that `torch.distributed.pipelining` reads with `_load_csv`."""
        return "".join(",".join(row) + "\n" for row in self.devices)

    def save(self, path: "Union[str, os.PathLike[str]]") -> None:
        """Writes PyTorch's CSV."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.to_csv())

    def _file(self) -> str:
        """The name of a file with it, which lives as long as this object."""
        if not hasattr(self, "_kept"):
            self._kept = tempfile.TemporaryDirectory(prefix="plumbline-")
            self.save(os.path.join(self._kept.name, "order.csv"))
        return os.path.join(self._kept.name, "order.csv")

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Order) and self.devices == other.devices

    def __hash__(self) -> int:
        return hash(self.to_csv())

    def __repr__(self) -> str:
        ops = sum(len(row) for row in self.devices)
        return f"<order of {ops} ops on {len(self.devices)} devices>"
