"""Orders of ops."""

from __future__ import annotations

import atexit
import hashlib
import os
import re
import shutil
import tempfile
import threading
from typing import Any, Iterable, Iterator, Sequence, Tuple, Union

#: An op: "0F3", or (stage, "F", micro-batch).
OpLike = Union[str, Tuple[int, str, int]]

_OP = re.compile(
    r"[0-9]+[FBIW][0-9]+|\(.*\)OVERLAP_F_B|[0-9]+(SEND|RECV)_[FB][0-9]+|[0-9]+(UNSHARD|RESHARD|REDUCE_GRAD)",
)


class Order:
    """The ops of each device, in the order in which it runs them. It does not change.

    >>> order = Order([["0F0", "0F1", "0B0", "0B1"], ["1F0", "1B0", "1F1", "1B1"]])
    >>> print(order, end="")
    0F0,0F1,0B0,0B1
    1F0,1B0,1F1,1B1

    An op is a stage, one of F (forward), B (backward), I (gradient of the input) and W (of the weights), and a
    micro-batch. Whether the order can run is checked when it is simulated: `simulate(scenario, schedule=order)`.
    Raises ValueError for a text that is no op.
    """

    def __init__(self, devices: Iterable[Iterable[OpLike]]) -> None:
        rows = []
        for number, ops in enumerate(devices):
            if isinstance(ops, (str, bytes)):
                raise ValueError(f"device {number}: {ops!r} is no list of ops; Order.from_csv reads a text")
            rows.append(tuple(_op_text(number, op) for op in ops))
        if not rows:
            raise ValueError("an order needs at least one device")
        #: The ops of each device.
        self.devices: Tuple[Tuple[str, ...], ...] = tuple(rows)

    @classmethod
    def from_csv(cls, text: str) -> "Order":
        """Reads the text of PyTorch's CSV: a row for each device, an op in each cell; empty cells are left out."""
        rows = text.lstrip("\ufeff").rstrip("\n").split("\n")
        return cls([[cell.strip().strip('"') for cell in row.split(",") if cell.strip()] for row in rows])

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
        """The name of a file with it, which is there until the process ends."""
        return _kept_file(self.to_csv())

    def __len__(self) -> int:
        """The devices."""
        return len(self.devices)

    def __iter__(self) -> Iterator[Tuple[str, ...]]:
        return iter(self.devices)

    def __getitem__(self, device: int) -> Tuple[str, ...]:
        return self.devices[device]

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Order) and self.devices == other.devices

    def __hash__(self) -> int:
        return hash(self.devices)

    def __str__(self) -> str:
        return self.to_csv()

    def __repr__(self) -> str:
        ops = sum(len(row) for row in self.devices)
        return f"<order of {ops} ops on {len(self.devices)} devices>"


def _op_text(device: int, op: Any) -> str:
    """An op as text."""
    text = op
    if isinstance(op, Sequence) and not isinstance(op, (str, bytes)) and len(op) == 3:
        text = "{}{}{}".format(*op)
    if not isinstance(text, str) or not _OP.fullmatch(text):
        raise ValueError(f"device {device}: {op!r} is no op; one is '0F3', or (0, 'F', 3)")
    return text


_lock = threading.Lock()
_folder: "Tuple[int, str]" = (0, "")  # the process that made it, and its name


def _kept_file(text: str) -> str:
    """The name of a file with this text in a folder of this process. Equal texts have one file."""
    global _folder
    with _lock:
        if _folder[0] != os.getpid():
            _folder = (os.getpid(), tempfile.mkdtemp(prefix="plumbline-"))
            atexit.register(_remove, *_folder)
        path = os.path.join(_folder[1], f"order-{hashlib.sha256(text.encode()).hexdigest()[:8]}.csv")
        if not os.path.exists(path):
            with open(path + ".partial", "w", encoding="utf-8") as file:
                file.write(text)
            os.replace(path + ".partial", path)
        return path


def _remove(process: int, folder: str) -> None:
    """Removes the folder at the end of the process that made it."""
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)
