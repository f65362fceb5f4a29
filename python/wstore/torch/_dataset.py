"""Windows as a dataset of torch's."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset, default_collate, get_worker_info
from torch.utils.data._utils.collate import default_collate_fn_map

from .._batches import _fields
from .._format import I64
from .._windows import Windows
from ..errors import ArgumentError
from ._gather import Mapped, fresh, present, tensor


class WindowDataset(Dataset[tuple[Tensor, ...]]):
    """Windows by number, for ``torch.utils.data.DataLoader``; :class:`WindowLoader` is many times as fast.

    Item i is a tuple of tensors, by default ``(x, y)``, without targets ``(x,)``: x is float32 of shape (lookback,
    inputs), y as of ``w[i]``. They are copies, which may be written to; the file can't be changed through them.

    `fields`: of "x", "y", "id" (the window's number), "ticker" (its code), "time" (of the anchor, in the store's unit
    since 1970) and "x_present", "y_present" (bool; False where a column of `optional` is missing); numbers are int64
    tensors without dimensions.

    A DataLoader asks for a batch at once (``__getitems__``), which is gathered at once, and default_collate passes it
    on as it is. Worker processes get numbers only: forked ones share the mapping; others get the file's path and the
    query (under 2 KB, but for the numbers of a selection by array) and map it themselves. All share the page cache, so
    that more workers need no more memory for data. A slice, a list or an array of numbers as an item gives a batch.
    """

    def __init__(self, windows: Windows, fields: str | Iterable[str] | None = None) -> None:
        if not isinstance(windows, Windows):
            raise ArgumentError(f"windows must be what Store.windows returns, not {type(windows).__name__}")
        self.windows = windows
        self.fields = _fields(windows, fields)
        self._source = Mapped(windows)

    def __len__(self) -> int:
        return len(self.windows)

    def __getitem__(self, i: Any) -> tuple[Tensor, ...]:
        w = self.windows
        if isinstance(i, slice):
            i = range(len(w))[i]
        if isinstance(i, list | range | np.ndarray):  # what a DataLoader without batches of its own asks for
            return self.__getitems__(i).batch
        if self.fields in (("x", "y"), ("x",)):
            x, y = w[i]
            if "y" not in self.fields or y is None:
                return (torch.from_numpy(x.copy()),)
            return torch.from_numpy(x.copy()), torch.from_numpy(y.copy())
        try:
            number = operator.index(i)
        except TypeError:
            raise ArgumentError(f"a window's number is an int, not {i!r}") from None
        n = len(w)
        if not -n <= number < n:
            raise w._range(number)
        return tuple(f[0] for f in self._gather(np.array([number % n], np.int64)))

    def __getitems__(self, ids: Sequence[int] | I64) -> Items:
        """The items of several windows, gathered as one batch of which each is a part."""
        a = np.asarray(ids)
        if a.ndim != 1 or (a.size and a.dtype.kind not in "iu"):
            raise ArgumentError(f"windows' numbers are ints, not {ids!r}")
        a = a.astype(np.int64)
        return Items(self._gather(np.where(a < 0, a + len(self), a)))

    def _gather(self, ids: I64) -> tuple[Tensor, ...]:
        w, wanted = self.windows, self.fields
        allocate = fresh if get_worker_info() is None else _sendable
        sides = {side: allocate for side in "xy" if any(f.startswith(side) for f in wanted)}
        found = {"id": tensor(ids), **self._source.gather(ids, sides, announce=True)}
        for name in sides:
            if f"{name}_present" in wanted:
                found[f"{name}_present"] = present(found[name])
        if "ticker" in wanted or "time" in wanted:
            code, time, _ = w.locate(ids)
            found["ticker"], found["time"] = tensor(code), tensor(time)
        return tuple(found[f] for f in wanted)

    def __reduce__(self) -> tuple[Any, ...]:
        return WindowDataset, (self.windows, self.fields)

    def __repr__(self) -> str:
        return f"<wstore.torch.WindowDataset: {', '.join(self.fields)} of {self.windows!r}>"


def _sendable(shape: tuple[int, ...]) -> Tensor:
    """In shared memory, from where the main process takes it: else it would be copied there."""
    size = 4 * int(np.prod(shape))
    storage = torch.UntypedStorage._new_shared(size)  # type: ignore[no-untyped-call]
    return torch.empty(0, dtype=torch.float32).set_(storage, 0, shape)  # type: ignore[call-overload,no-any-return]


class _Item(tuple[Tensor, ...]):
    """One of several items that were gathered together."""

    __slots__ = ()


class Items(Sequence[tuple[Tensor, ...]]):
    """Items that were gathered together: to collate functions a sequence of tuples, to default_collate a batch."""

    __slots__ = ("batch",)

    def __init__(self, batch: tuple[Tensor, ...]) -> None:
        self.batch = batch

    def __len__(self) -> int:
        return len(self.batch[0])

    def __getitem__(self, i: Any) -> Any:
        if isinstance(i, slice):
            return Items(tuple(f[i] for f in self.batch))
        return _Item(f[i] for f in self.batch)

    def __iter__(self) -> Iterator[tuple[Tensor, ...]]:
        return (self[i] for i in range(len(self)))


def _collate(items: Any, *, collate_fn_map: Any = None) -> Any:
    if isinstance(items, Items):
        return list(items.batch)
    return default_collate([tuple(item) for item in items])


# The documented way to tell default_collate about a type; DataLoader uses it unless told otherwise.
default_collate_fn_map[_Item] = _collate
