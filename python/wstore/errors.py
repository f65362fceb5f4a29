"""What can go wrong. Everything that this package raises on its own account is a :class:`WstoreError`.

Errors of the operating system (no such file, no permission) are Python's own ``OSError``; an optional package that is
not installed is its ``ImportError``.
"""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Iterable
from typing import Any

__all__ = [
    "ArgumentError",
    "ClosedError",
    "ConvertError",
    "CorruptError",
    "FileError",
    "NotFoundError",
    "StaleError",
    "UnsupportedError",
    "WindowRangeError",
    "WstoreError",
]


class WstoreError(Exception):
    """The base of all errors of this package."""


class FileError(WstoreError):
    """A file that can't be read: what is wrong (`code`, section 12 of the specification) and where.

    `path` names the file, `section` the part of it, `offset` the byte (None where it is no single one),
    and `detail` says the rest.
    """

    def __init__(self, path: str, section: str, offset: int | None, code: str, detail: str) -> None:
        super().__init__(path, section, offset, code, detail)
        self.path = path
        self.section = section
        self.offset = offset
        self.code = code
        self.detail = detail

    def __str__(self) -> str:
        where = self.section if self.offset is None else f"{self.section}, byte {self.offset}"
        return f"{self.path}: {where}: {self.detail} [{self.code}]"


class CorruptError(FileError):
    """The file is damaged, cut, or never was a wstore file."""


class UnsupportedError(FileError):
    """The file is sound as far as one can tell, but needs a newer reader."""


class NotFoundError(WstoreError, KeyError):
    """An unknown name of a ticker, column, group or break set."""

    def __init__(self, kind: str, name: object, known: Iterable[str] = ()) -> None:
        self.kind = kind
        self.name = name
        self.known = tuple(known)
        super().__init__(kind, name, self.known)

    def __str__(self) -> str:
        text = f"no {self.kind} {self.name!r}"
        if isinstance(self.name, str):
            likely: Iterable[str] = self.known
            if len(self.known) > 10_000:  # comparing takes a while
                likely = itertools.islice((k for k in self.known if k[:1] == self.name[:1]), 10_000)
            close = difflib.get_close_matches(self.name, list(likely), n=3, cutoff=0.6)
            if not close:
                close = [k for k in self.known if k.casefold() == self.name.casefold()][:3]
            if close:
                text += "; did you mean " + " or ".join(repr(c) for c in close) + "?"
        if self.known:
            shown = ", ".join(repr(k) for k in self.known[:20])
            more = f", … ({len(self.known)} in all)" if len(self.known) > 20 else ""
            text += f" (known: {shown}{more})"
        elif self.kind == "break set":
            text += " (the file has none; convert with --max-gap)"
        return text

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.kind, self.name, self.known)


class ArgumentError(WstoreError, ValueError):
    """An argument that can't be meant; the text says which values would do."""


class WindowRangeError(ArgumentError, IndexError):
    """A window number that is out of range."""


class ClosedError(WstoreError):
    """The store was closed."""


class StaleError(WstoreError):
    """A pickled store's file is no longer the one that it was."""


class ConvertError(WstoreError):
    """A file could not be written. `message` is what the command line tool said, which names row and column.

    `code` is its exit code: 1 a failure of the system, 3 data that can't be stored, 4 an unknown name, 5 something that
    this version can't do, 130 interrupted, negative if a signal killed it; None if it could not be run.
    """

    def __init__(self, code: int | None, message: str) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message

    def __str__(self) -> str:
        return self.message
