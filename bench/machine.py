"""What the benchmarks ask of the machine: limits of memory, the page cache, what a process holds; and what it is."""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import platform
import time
from collections.abc import Iterable
from pathlib import Path

CGROUPS = Path("/sys/fs/cgroup")


class Limit:
    """A memory cgroup (version 1 or 2) with a limit in bytes; `path` is None, and `why` says why, where none can be."""

    def __init__(self, size: int) -> None:
        self.path: Path | None = None
        failed = "the memory controller is not mounted"
        for parent, name in _parents():
            path = parent / f"wstore-bench-{os.getpid()}"
            try:
                path.mkdir()
            except OSError as e:
                failed = str(e)
                continue
            try:
                (path / name).write_text(str(size))
            except OSError as e:
                failed = str(e)
                path.rmdir()
                continue
            with contextlib.suppress(OSError):  # as if there were no swap; version 1 never swaps more than it may
                (path / "memory.swap.max").write_text("0")
            self.path = path
            break
        self.why = "" if self.path else f"memory can't be limited here: {failed}"

    def failures(self) -> str:
        """How often the limit was hit, where the kernel says."""
        if self.path is None:
            return ""
        for name in ("memory.failcnt", "memory.events"):
            if (self.path / name).exists():
                return (self.path / name).read_text().split("max ")[-1].split()[0]
        return ""

    def close(self) -> None:
        if self.path is not None:
            for _ in range(50):
                try:
                    self.path.rmdir()
                    return
                except OSError:
                    time.sleep(0.1)


def _parents() -> Iterable[tuple[Path, str]]:
    """Where a group may be made, and the name of its limit."""
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        number, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):
            yield CGROUPS / "memory" / path.lstrip("/"), "memory.limit_in_bytes"
        elif number == "0" and not controllers and (CGROUPS / "cgroup.controllers").exists():
            own = CGROUPS / path.lstrip("/")
            # A group with processes in it can't hand its memory to a child: then one further up.
            for at in (own, *own.parents):
                yield at, "memory.max"
                if at == CGROUPS:
                    break


def join(group: str) -> None:
    """Moves this process into a cgroup; what it holds already is not counted there."""
    (Path(group) / "cgroup.procs").write_text(str(os.getpid()))


def drop(paths: Iterable[Path]) -> None:
    """Takes files, and those in folders, out of the page cache."""
    for path in paths:
        for file in (p for p in (path.rglob("*") if path.is_dir() else [path]) if p.is_file()):
            fd = os.open(file, os.O_RDONLY)
            os.fsync(fd)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(fd)


def read_bytes() -> int:
    """What this process has had read from disk."""
    try:
        lines = Path("/proc/self/io").read_text().splitlines()
    except OSError:
        return 0
    return next(int(line.split()[1]) for line in lines if line.startswith("read_bytes"))


def memory() -> tuple[int, int]:
    """Bytes that this process holds: of its own (anonymous and shared memory), and with its share of mapped files."""
    kib: dict[str, int] = {}
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/smaps_rollup").read_text().splitlines()[1:]:
            name, n, *_ = line.split()
            kib[name] = int(n)
    return (kib.get("Pss_Anon:", 0) + kib.get("Pss_Shmem:", 0)) * 1024, kib.get("Pss:", 0) * 1024


def readahead(path: Path) -> str:
    """The kernel's readahead of the disk that a file is on, in KiB."""
    device = os.stat(path).st_dev
    for place in ("queue", "../queue"):
        f = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}") / place / "read_ahead_kb"
        if f.exists():
            return f.read_text().strip()
    return "unknown"


def describe(folder: Path, packages: Iterable[str]) -> str:
    """The machine and the versions, in a few words."""
    cpu = "unknown processor"
    with contextlib.suppress(OSError, StopIteration):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        cpu = next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    ram = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    versions = []
    for p in packages:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions.append(f"{p} {importlib.metadata.version(p)}")
    cores = len(os.sched_getaffinity(0))
    return (
        f"{cores} cores ({cpu}), {ram:.0f} GiB, {platform.system()} {platform.release()}, "
        f"`read_ahead_kb` {readahead(folder)}; Python {platform.python_version()}, {', '.join(versions)}"
    )
