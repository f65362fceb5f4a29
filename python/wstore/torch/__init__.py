"""Windows for torch: a dataset for its DataLoader, and a loader of its own that is many times as fast.

>>> from wstore.torch import WindowLoader
>>> loader = WindowLoader(train, 256, order="exact", seed=1, device="cuda")
>>> for epoch in range(10):
...     loader.set_epoch(epoch)
...     for x, y in loader:
...         ...

Nothing else in wstore imports torch.
"""

from ._article import TimeSeriesDataset
from ._dataset import WindowDataset
from ._loader import Batch, LoaderStats, WindowLoader

__all__ = ["Batch", "LoaderStats", "TimeSeriesDataset", "WindowDataset", "WindowLoader"]
