"""The contenders: each what one would write with a library for windows of a panel, as well as we know how.

One class each, with the same few methods. To add one: write a class that has what `Contender` says, put `@contender`
over it, and run `bench/peers.py --quick --only NAME`, which also checks that its windows are the right ones.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from panel import F32, I64, ROOT, Panel, once

BATCH = 256
# The loader of what has none of its own.
PLAIN = "a permutation, batch by batch"

Loader = Callable[[], Iterator[Any]]
Pair = tuple[Any, Any]

# By name, in the order in which they are written here.
CONTENDERS: dict[str, type[Contender]] = {}


def contender(cls: type[Contender]) -> type[Contender]:
    CONTENDERS[cls.name] = cls
    return cls


class Contender:
    """Windows of one panel with one library.

    Methods return x of shape (lookback, columns), or (n, lookback, columns), and y of shape (1,) or (n, 1): numpy
    arrays or tensors; x are all columns, y is the target in the last row, as for labels that were computed beforehand.
    """

    name: ClassVar[str]
    what: ClassVar[str]
    """In a few words, for the tables."""
    needs: ClassVar[tuple[str, ...]] = ()
    """Modules, imported before anything is measured; for loaders torch, and what stands in `needs_to_load`."""
    needs_to_load: ClassVar[tuple[str, ...]] = ()
    group: ClassVar[str] = "peers"
    """`peers`, what `make bench` runs; `more`, only `make bench-all`."""
    index: ClassVar[str] = "int64 starts"
    """What it keeps to find a window."""

    def __init__(self, panel: Panel, lookback: int) -> None:
        self.panel = panel
        self.lookback = lookback

    @property
    def path(self) -> Path:
        """Its file or folder."""
        raise NotImplementedError

    def prepare(self) -> None:
        """Writes its file, unless it is there."""

    def open(self) -> None:
        """From nothing to being ready to give any window."""
        self.starts = self.panel.starts(self.lookback)

    def index_bytes(self) -> float:
        """Bytes of memory or disk for each window, to know where it is."""
        return self.starts.itemsize

    def __len__(self) -> int:
        return len(self.starts)

    def numbers(self, starts: I64) -> I64:
        """Its numbers of the windows that begin at these rows of the panel; not measured."""
        return self.panel.numbers(starts, self.lookback)

    def window(self, i: int) -> Pair | None:
        """One window; None from what has no windows."""
        raise NotImplementedError

    def batch(self, ids: I64) -> Pair:
        """Several, in arrays of their own. Here: one after the other."""
        x = np.empty((len(ids), self.lookback, len(self.panel.columns)), np.float32)
        y = np.empty((len(ids), 1), np.float32)
        for j, i in enumerate(ids.tolist()):
            pair = self.window(i)
            assert pair is not None
            x[j], y[j] = pair
        return x, y

    def loaders(self) -> dict[str, Loader]:
        """Shuffled epochs of tensors, by name, once it is open. Here: a permutation, cut into batches."""
        return {PLAIN: self._permuted}

    def cold(self, limit: int) -> dict[str, Loader]:
        """Those for a file that is larger than the memory: `limit` bytes."""
        return dict(list(self.loaders().items())[:1])

    def _permuted(self) -> Iterator[Pair]:
        torch = use("torch")
        order = np.random.default_rng(1).permutation(len(self))
        for at in range(0, len(order), BATCH):
            x, y = self.batch(order[at : at + BATCH])
            yield torch.from_numpy(x), torch.from_numpy(y)


def use(module: str) -> Any:
    """A module that not every environment has."""
    return importlib.import_module(module)


def data_loader(dataset: Callable[[], Any], workers: int) -> Loader:
    def make() -> Iterator[Any]:
        loader = use("torch.utils.data").DataLoader(dataset(), batch_size=BATCH, shuffle=True, num_workers=workers)
        return iter(loader)

    return make


# wstore


@contender
class Wstore(Contender):
    name = "wstore"
    what = "`w[i]`, `gather`, `WindowLoader`"
    needs = ("wstore",)
    needs_to_load = ("wstore.torch",)
    index = "runs"

    @property
    def path(self) -> Path:
        return self.panel.folder / "panel.wst"

    def prepare(self) -> None:
        cli = os.environ.get("WSTORE", str(ROOT / "bin" / "wstore"))
        source, ticker = (self.panel.csv, "Name") if self.panel.csv else (self.panel.parquet, "ticker")

        def write(part: Path) -> None:
            command = [cli, "convert", str(source), "-o", str(part), "--ticker", ticker]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                sys.exit(f"{' '.join(command)}: {done.stderr}")

        once(self.path, write)

    def open(self) -> None:
        self.w = use("wstore").open(self.path).windows(self.lookback, horizon=0, targets=self.panel.target)

    def index_bytes(self) -> float:
        return float(self.w.nbytes_index / len(self.w))

    def __len__(self) -> int:
        return len(self.w)

    def numbers(self, starts: I64) -> I64:
        ticker = np.searchsorted(self.panel.bounds, starts, "right") - 1
        names = [self.panel.tickers[t] for t in ticker]
        found: I64 = self.w.find(names, self.panel.dates()[starts + self.lookback - 1])
        return found

    def window(self, i: int) -> Pair:
        pair: Pair = self.w[i]
        return pair

    def batch(self, ids: I64) -> Pair:
        pair: Pair = self.w.gather(ids)
        return pair

    def loaders(self) -> dict[str, Loader]:
        def dataset() -> Any:
            return use("wstore.torch").WindowDataset(self.w)

        return {
            "WindowLoader, exact": self._loader("exact"),
            "WindowLoader, blocked": self._loader("blocked"),
            "DataLoader(WindowDataset), 0 workers": data_loader(dataset, 0),
            "DataLoader(WindowDataset), 2 workers": data_loader(dataset, 2),
        }

    def cold(self, limit: int) -> dict[str, Loader]:
        return {
            "WindowLoader, blocked": self._loader("blocked", group_bytes=limit // 6),
            "WindowLoader, exact": self._loader("exact"),
        }

    def _loader(self, order: str, **more: Any) -> Loader:
        return lambda: iter(use("wstore.torch").WindowLoader(self.w, batch_size=BATCH, order=order, **more))


@contender
class WstoreDataset(Contender):
    name = "wstore-dataset"
    what = "`wstore.torch.TimeSeriesDataset`, the article's class over a wstore file"
    needs = ("wstore", "wstore.torch", "torch.utils.data")
    index = "runs"

    @property
    def path(self) -> Path:
        return self.panel.folder / "panel.wst"

    def prepare(self) -> None:
        Wstore(self.panel, self.lookback).prepare()

    def open(self) -> None:
        dataset = use("wstore.torch").TimeSeriesDataset
        self.dataset = dataset(self.path, self.panel.columns, [self.panel.target], self.lookback)

    def index_bytes(self) -> float:
        w = self.dataset.store.windows(self.lookback, horizon=0, targets=self.panel.target, optional=self.panel.columns)
        return float(w.nbytes_index / len(w))

    def __len__(self) -> int:
        return len(self.dataset)

    def window(self, i: int) -> Pair:
        pair: Pair = self.dataset[i]
        return pair

    def batch(self, ids: I64) -> Pair:
        x, y = use("torch.utils.data").default_collate(self.dataset.__getitems__(ids.tolist()))
        return x, y

    def loaders(self) -> dict[str, Loader]:
        return {f"DataLoader, {n} workers": data_loader(lambda: self.dataset, n) for n in (0, 2)}


# The article's two datasets: arrays of a data frame, one for each ticker, and a list with an entry for each window


class Article(Contender):
    needs = ("polars", "torch")
    dataset: Any

    @property
    def path(self) -> Path:
        return self.panel.parquet

    def arrays(self) -> Iterator[tuple[F32, F32]]:
        """Features and targets of each ticker, from a data frame as the article does it."""
        pl = use("polars")
        df = pl.read_parquet(self.path).sort("ticker", "date")
        for _, of in df.group_by("ticker", maintain_order=True):
            x = of.select(self.panel.columns).to_numpy().astype(np.float32)
            y = of.select(self.panel.target).to_numpy().astype(np.float32)
            if len(x) > self.lookback:
                yield x, y

    def __len__(self) -> int:
        return len(self.dataset)

    def window(self, i: int) -> Pair:
        pair: Pair = self.dataset[i]
        return pair

    def batch(self, ids: I64) -> Pair:
        collate = use("torch.utils.data").default_collate
        x, y = collate([self.dataset[i] for i in ids.tolist()])
        return x, y

    def loaders(self) -> dict[str, Loader]:
        return {f"DataLoader, {n} workers": data_loader(lambda: self.dataset, n) for n in (0, 2)}


class ListOfViews:
    """Every window is two numpy views, kept in a list."""

    def __init__(self, arrays: Iterator[tuple[F32, F32]], lookback: int) -> None:
        self.views: list[tuple[F32, F32]] = []
        for x, y in arrays:
            for i in range(len(x) - lookback):
                self.views.append((x[i : i + lookback], y[i + lookback - 1]))
        self.tensor = use("torch").from_numpy

    def __len__(self) -> int:
        return len(self.views)

    def __getitem__(self, i: int) -> Pair:
        x, y = self.views[i]
        return self.tensor(x), self.tensor(y)


class IndexMap:
    """Every window is a pair of block and row in a list; the blocks are tensors."""

    def __init__(self, arrays: Iterator[tuple[F32, F32]], lookback: int) -> None:
        self.lookback = lookback
        self.blocks: list[Pair] = []
        self.places: list[tuple[int, int]] = []
        tensor = use("torch").from_numpy
        for x, y in arrays:
            self.places.extend((len(self.blocks), i) for i in range(len(x) - lookback))
            self.blocks.append((tensor(x), tensor(y)))

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, i: int) -> Pair:
        block, at = self.places[i]
        x, y = self.blocks[block]
        return x[at : at + self.lookback], y[at + self.lookback - 1]


@contender
class ArticleBefore(Article):
    name = "article-before"
    what = "the article's first dataset: a list of two numpy views for each window"
    index = "list of views"

    def open(self) -> None:
        self.dataset = ListOfViews(self.arrays(), self.lookback)

    def index_bytes(self) -> float:
        x, y = pair = self.dataset.views[-1]
        return 8 + sys.getsizeof(pair) + sys.getsizeof(x) + sys.getsizeof(y)


@contender
class ArticleAfter(Article):
    name = "article-after"
    what = "the article's second: tensors, and a list of (block, row)"
    index = "list of pairs"

    def open(self) -> None:
        self.dataset = IndexMap(self.arrays(), self.lookback)

    def index_bytes(self) -> float:
        # The block's number belongs to all of its pairs; so do, to everybody, the ints up to 256.
        pair = self.dataset.places[-1]
        return 8 + sys.getsizeof(pair) + sys.getsizeof(pair[1])


# numpy


class Mapped(Contender):
    """On the plain .npy file."""

    @property
    def path(self) -> Path:
        return self.panel.npy

    def open(self) -> None:
        super().open()
        self.values = np.load(self.path, mmap_mode="r")
        self.target = self.panel.target_column


@contender
class NumpyLoop(Mapped):
    name = "numpy-loop"
    what = "`np.memmap`, a slice for each window"

    def window(self, i: int) -> Pair:
        s = self.starts[i]
        x = self.values[s : s + self.lookback]
        return x, x[-1, self.target : self.target + 1]


@contender
class NumpyGather(Mapped):
    name = "numpy-gather"
    what = "`np.memmap`, `sliding_window_view(…)[starts[ids]]`"

    def open(self) -> None:
        super().open()
        self.values = np.asarray(self.values)  # the memmap class makes every slice slower
        shape = (self.lookback, self.values.shape[1])
        self.views = np.lib.stride_tricks.sliding_window_view(self.values, shape)[:, 0]

    def window(self, i: int) -> Pair:
        x = self.views[self.starts[i]]
        return x, x[-1, self.target : self.target + 1]

    def batch(self, ids: I64) -> Pair:
        x = self.views[self.starts[ids]]
        return x, x[:, -1, self.target : self.target + 1]


@contender
class Megatron(Mapped):
    """Beside the rows a file that lists the samples, and one that shuffles them, for this lookback and seed."""

    name = "megatron"
    what = "as Megatron-LM does it: rows, sample index and shuffle index in mapped files, `np.frombuffer`"
    index = "int64 samples, uint32 shuffle, on disk"

    def _file(self, what: str) -> Path:
        return self.panel.folder / f"megatron-{what}-{self.lookback}.npy"

    def prepare(self) -> None:
        starts = self.panel.starts(self.lookback)
        ticker = np.searchsorted(self.panel.bounds, starts, "right") - 1
        samples = np.stack([ticker, starts - self.panel.bounds[ticker]], axis=1)
        shuffle = np.random.default_rng(1).permutation(len(starts)).astype(np.uint32)

        def save(array: Any) -> Callable[[Path], None]:
            def write(part: Path) -> None:
                with part.open("wb") as f:
                    np.save(f, array)

            return write

        once(self._file("samples"), save(samples))
        once(self._file("shuffle"), save(shuffle))

    def open(self) -> None:
        self.samples = np.load(self._file("samples"), mmap_mode="r")
        self.shuffle = np.load(self._file("shuffle"), mmap_mode="r")
        mapped = np.load(self.path, mmap_mode="r")
        self.width = mapped.shape[1]
        self.buffer = memoryview(mapped).cast("B")
        self.target = self.panel.target_column
        self.rows = self.panel.bounds.tolist()

    def index_bytes(self) -> float:
        return float(self.samples[0].nbytes + self.shuffle.itemsize)

    def __len__(self) -> int:
        return len(self.samples)

    def numbers(self, starts: I64) -> I64:
        place = np.empty(len(self), np.int64)
        place[self.shuffle] = np.arange(len(self))
        return place[super().numbers(starts)]

    def window(self, i: int) -> Pair:
        ticker, row = self.samples[self.shuffle[i]]
        at = (self.rows[ticker] + int(row)) * self.width * 4
        x = np.frombuffer(self.buffer, np.float32, self.lookback * self.width, at).reshape(-1, self.width)
        return x, x[-1, self.target : self.target + 1]

    def loaders(self) -> dict[str, Loader]:
        return {PLAIN: self._shuffled}

    def _shuffled(self) -> Iterator[Pair]:
        tensor = use("torch").from_numpy
        for at in range(0, len(self), BATCH):
            x, y = self.batch(np.arange(at, min(len(self), at + BATCH)))
            yield tensor(x), tensor(y)


# Arrow, HDF5, Lance


def rows_as_lists(panel: Panel) -> Any:
    """A table with one column, whose cells are whole rows."""
    pa = use("pyarrow")
    values = panel.values
    lists = pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), values.shape[1])
    return pa.table({"row": lists})


def write_ipc(table: Any, path: Path) -> None:
    with use("pyarrow").ipc.new_file(path, table.schema) as f:
        f.write_table(table)


def read_ipc(path: Path) -> Any:
    pa = use("pyarrow")
    return pa.ipc.open_file(pa.memory_map(str(path))).read_all().combine_chunks()


@contender
class ArrowColumns(Contender):
    name = "arrow-columns"
    what = "Arrow IPC, mapped; a column for each feature; `slice(…).to_tensor()`"
    needs = ("pyarrow", "pyarrow.ipc")

    @property
    def path(self) -> Path:
        return self.panel.folder / "columns.arrow"

    def prepare(self) -> None:
        pa = use("pyarrow")

        def write(part: Path) -> None:
            values = self.panel.values
            names = self.panel.columns
            columns = [pa.array(np.ascontiguousarray(values[:, i])) for i in range(len(names))]
            write_ipc(pa.table(columns, names=names), part)

        once(self.path, write)

    def open(self) -> None:
        super().open()
        self.table = read_ipc(self.path).to_batches()[0]
        self.target = self.panel.target_column

    def window(self, i: int) -> Pair:
        x = self.table.slice(int(self.starts[i]), self.lookback).to_tensor().to_numpy()
        return x, x[-1, self.target : self.target + 1]


@contender
class ArrowList(Contender):
    name = "arrow-list"
    what = "Arrow IPC, mapped; one column of rows as fixed-size lists; `slice(…)`"
    needs = ("pyarrow", "pyarrow.ipc")

    @property
    def path(self) -> Path:
        return self.panel.folder / "lists.arrow"

    def prepare(self) -> None:
        once(self.path, lambda part: write_ipc(rows_as_lists(self.panel), part))

    def open(self) -> None:
        super().open()
        self.column = read_ipc(self.path)["row"].chunk(0)
        self.width = len(self.panel.columns)
        self.target = self.panel.target_column

    def window(self, i: int) -> Pair:
        x = self.column.slice(int(self.starts[i]), self.lookback).flatten().to_numpy().reshape(-1, self.width)
        return x, x[-1, self.target : self.target + 1]


class Rows(Contender):
    """What reads ranges of rows: `read(s, e)` gives the rows [s, e)."""

    read: Callable[[int, int], F32]

    def open(self) -> None:
        super().open()
        self.target = self.panel.target_column

    def window(self, i: int) -> Pair:
        s = int(self.starts[i])
        x = self.read(s, s + self.lookback)
        return x, x[-1, self.target : self.target + 1]


class Hdf5(Rows):
    needs = ("h5py",)
    chunks: ClassVar[int] = 0

    @property
    def path(self) -> Path:
        return self.panel.folder / f"{self.name}.h5"

    def prepare(self) -> None:
        values = self.panel.values
        chunks = (self.chunks, values.shape[1]) if self.chunks else None

        def write(part: Path) -> None:
            with use("h5py").File(part, "w") as f:
                f.create_dataset("values", data=values, chunks=chunks)

        once(self.path, write)

    def open(self) -> None:
        super().open()
        data = use("h5py").File(self.path, "r")["values"]
        self.read = lambda s, e: data[s:e]


@contender
class Hdf5Contiguous(Hdf5):
    name = "hdf5"
    what = "h5py, contiguous; a slice for each window"


@contender
class Hdf5Chunked(Hdf5):
    name = "hdf5-chunked"
    what = "h5py, chunks of 256 rows, not compressed"
    chunks = 256


@contender
class Lance(Contender):
    name = "lance"
    what = "Lance; one column of rows as fixed-size lists; `take` of a batch's rows, each once, in order"
    needs = ("pyarrow", "lance")

    @property
    def path(self) -> Path:
        return self.panel.folder / "rows.lance"

    def prepare(self) -> None:
        once(self.path, lambda part: use("lance").write_dataset(rows_as_lists(self.panel), str(part)))

    def open(self) -> None:
        super().open()
        self.data = use("lance").dataset(str(self.path))
        self.width = len(self.panel.columns)
        self.target = self.panel.target_column
        self.span = np.arange(self.lookback)

    def window(self, i: int) -> Pair:
        x, y = self.batch(np.array([i]))
        return x[0], y[0]

    def batch(self, ids: I64) -> Pair:
        rows, at = np.unique(self.starts[ids][:, None] + self.span, return_inverse=True)
        column = self.data.take(rows.tolist(), columns=["row"])["row"].combine_chunks()
        x = column.flatten().to_numpy().reshape(-1, self.width)[at.reshape(len(ids), -1)]
        return x, x[:, -1, self.target : self.target + 1]


# What only `make bench-all` runs


@contender
class HuggingFace(Rows):
    name = "hf-datasets"
    what = "Hugging Face datasets, saved to disk, in numpy format; a slice for each window"
    needs = ("datasets",)
    group = "more"

    @property
    def path(self) -> Path:
        return self.panel.folder / "huggingface"

    def prepare(self) -> None:
        datasets = use("datasets")

        def write(part: Path) -> None:
            datasets.Dataset(rows_as_lists(self.panel)).save_to_disk(str(part))

        once(self.path, write)

    def open(self) -> None:
        super().open()
        data = use("datasets").load_from_disk(str(self.path)).with_format("numpy")
        self.read = lambda s, e: data[s:e]["row"]


def write_zarr(panel: Panel, part: Path) -> None:
    values = panel.values
    data = use("zarr").create_array(
        str(part), shape=values.shape, dtype="float32", chunks=(256, values.shape[1]), compressors=None
    )
    data[:] = values


class ZarrRows(Rows):
    """Of one Zarr array."""

    @property
    def path(self) -> Path:
        return self.panel.folder / "values.zarr"

    def prepare(self) -> None:
        once(self.path, lambda part: write_zarr(self.panel, part))


@contender
class Zarr(ZarrRows):
    name = "zarr"
    what = "Zarr 3, chunks of 256 rows, not compressed; a slice for each window"
    needs = ("zarr",)
    group = "more"

    def open(self) -> None:
        super().open()
        data = use("zarr").open_array(str(self.path), mode="r")
        self.read = lambda s, e: data[s:e]


@contender
class TensorStore(ZarrRows):
    name = "tensorstore"
    what = "TensorStore on the same Zarr array; the reads of a batch are under way together"
    needs = ("tensorstore", "zarr")
    group = "more"

    def open(self) -> None:
        super().open()
        spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{self.path}/"}}
        self.data = data = use("tensorstore").open(spec, read=True).result()
        self.read = lambda s, e: data[s:e].read().result()

    def batch(self, ids: I64) -> Pair:
        reads = [self.data[s : s + self.lookback].read() for s in self.starts[ids].tolist()]
        x = np.stack([r.result() for r in reads])
        return x, x[:, -1, self.target : self.target + 1]


@contender
class ParquetRowGroups(Rows):
    name = "parquet"
    what = "Parquet by pyarrow, a row group for each ticker, read for each window"
    needs = ("pyarrow", "pyarrow.parquet")
    group = "more"

    @property
    def path(self) -> Path:
        return self.panel.parquet

    def open(self) -> None:
        super().open()
        self.file = use("pyarrow.parquet").ParquetFile(self.path, memory_map=True)
        self.read = self._read

    def _read(self, s: int, e: int) -> F32:
        ticker = int(np.searchsorted(self.panel.bounds, s, "right")) - 1
        s, e = s - self.panel.bounds[ticker], e - self.panel.bounds[ticker]
        table = self.file.read_row_group(ticker, columns=self.panel.columns, use_threads=False)
        rows: F32 = np.stack([c.to_numpy()[s:e] for c in table.columns], axis=1)
        return rows


# Bounds


class Bound(Mapped):
    """Not windows, but as many bytes, copied into an array that is there."""

    index = "none"

    def open(self) -> None:
        super().open()
        size = self.lookback * self.values.shape[1]
        flat = np.asarray(self.values).reshape(-1)
        self.pieces = flat[: flat.size // size * size].reshape(-1, size)
        self.out = np.empty((BATCH, size), np.float32)

    def index_bytes(self) -> float:
        return 0

    def window(self, i: int) -> Pair | None:
        return None

    def loaders(self) -> dict[str, Loader]:
        return {}


@contender
class Memcpy(Bound):
    name = "memcpy"
    what = "the limit: as many bytes, as many copies, from random places into an array that is there"

    def batch(self, ids: I64) -> Pair:
        np.take(self.pieces, ids % len(self.pieces), axis=0, out=self.out, mode="clip")
        return self.out, None


@contender
class MemcpyBlock(Bound):
    name = "memcpy-block"
    what = "as many bytes in one copy"

    def batch(self, ids: I64) -> Pair:
        at = int(ids[0]) % max(1, len(self.pieces) - BATCH)
        np.copyto(self.out, self.pieces[at : at + BATCH])
        return self.out, None
