"""The errors of plumbline."""

from __future__ import annotations

from typing import List, NamedTuple, Sequence, Tuple


class Problem(NamedTuple):
    """One fault of an input, and its place."""

    fault: str  #: "input", "file", "infeasible" or "no_device"
    file: str  #: as it was given; "<setting>", "<condition>"; "" = no file
    line: int  #: from 1; 0 = the file as a whole
    column: int  #: from 1
    message: str  #: one sentence
    help: str  #: what to do; "" = nothing to add


class Error(ValueError):
    """All faults of an input. `str(error)` is what the command prints.

    `file`, `line`, `column`, `message` and `help` are those of the first fault.
    """

    def __init__(self, problems: Sequence[Problem], text: str = "") -> None:
        super().__init__(text)
        self.problems: List[Problem] = list(problems)
        first = self.problems[0] if self.problems else Problem("input", "", 0, 0, text, "")
        self.file, self.line, self.column = first.file, first.line, first.column
        self.message, self.help = first.message, first.help

    def __str__(self) -> str:
        return str(self.args[0]).rstrip("\n")

    def __reduce__(self) -> Tuple[type, Tuple[List[Problem], str]]:
        return (type(self), (self.problems, str(self.args[0])))


class InputError(Error):
    """A wrong scenario or a wrong argument."""


class FileError(Error):
    """A file cannot be read."""


class InfeasibleError(Error):
    """The input is well formed, but cannot run: a deadlock, or too little memory for any choice."""


class NoDeviceError(Error):
    """The input asks for a device that is not here."""


_CLASSES = {
    "input": InputError,
    "file": FileError,
    "infeasible": InfeasibleError,
    "no_device": NoDeviceError,
}


def error_of(problems: Sequence[Tuple[str, str, int, int, str, str]], text: str) -> Error:
    """The exception of these faults; its class is that of the gravest. Called by plumbline._core."""
    named = [Problem(*one) for one in problems]
    faults = {one.fault for one in named}
    for fault, its_class in _CLASSES.items():
        if fault in faults:
            return its_class(named, text)
    return Error(named, text)
