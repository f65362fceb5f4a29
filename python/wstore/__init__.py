"""Training windows of time-series panels, read in place from one file.

>>> store = wstore.open("sp500.wst")
>>> w = store.windows(lookback=60, horizon=1, targets="close")
>>> x, y = w[0]
>>> x, y = w.gather(range(256))
"""

from ._batches import Batch, ByTime
from ._format import BreakSet, Column, Group, Schema
from ._splits import Fold, Split
from ._store import Store, open, open_bytes
from ._windows import Windows
from ._write import Report, write
from .errors import (
    ArgumentError,
    ClosedError,
    ConvertError,
    CorruptError,
    FileError,
    NotFoundError,
    StaleError,
    UnsupportedError,
    WindowRangeError,
    WstoreError,
)
from .stats import Standardizer

__all__ = [
    "ArgumentError",
    "Batch",
    "BreakSet",
    "ByTime",
    "ClosedError",
    "Column",
    "ConvertError",
    "CorruptError",
    "FileError",
    "Fold",
    "Group",
    "NotFoundError",
    "Report",
    "Schema",
    "Split",
    "StaleError",
    "Standardizer",
    "Store",
    "UnsupportedError",
    "WindowRangeError",
    "Windows",
    "WstoreError",
    "open",
    "open_bytes",
    "write",
]
