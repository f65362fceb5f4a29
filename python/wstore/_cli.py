"""The command line tool: where it is, running it, and what its failures become."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import io
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any, NoReturn, cast

from .errors import ArgumentError, ConvertError

_NAME = "wstore.exe" if os.name == "nt" else "wstore"
_PACKAGE = Path(__file__).parent
# How long the tool has to remove its temporary files when it is told to end.
_PATIENCE = 10.0

Feed = Callable[[IO[bytes]], None]


def find() -> str:
    """The path of the tool: ``$WSTORE``, else the wheel's own, a checkout's (built if Go is there), or PATH's."""
    if given := os.environ.get("WSTORE"):
        if shutil.which(given) is None:
            raise ConvertError(None, f"WSTORE={given} is not a program; set it to the wstore tool, or unset it")
        return given
    own = _PACKAGE / "_bin" / _NAME
    if own.exists():
        return str(own)
    checkout = _PACKAGE.parents[1]
    go = shutil.which("go")
    if go is not None and (checkout / "cmd" / "wstore" / "main.go").exists() and (checkout / "go.mod").exists():
        return _build(go, checkout)
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        path = shutil.which("wstore", path=folder) if folder else None
        if path is not None and not _is_script(path):
            return path
    raise ConvertError(
        None,
        "the command line tool wstore, which writes files, is not here: this package was installed without it. "
        "Install a wheel of this platform, or install from a checkout with Go on the PATH, or set WSTORE to the "
        "tool's path. Reading needs no tool",
    )


def _is_script(path: str) -> bool:
    """Whether it is this package's own entry, of this environment or another, which would look for the tool again."""
    if os.path.dirname(os.path.abspath(path)) == os.path.abspath(sysconfig.get_path("scripts")):
        return True
    with open(path, "rb") as f:
        return f.read(2) == b"#!"


@functools.cache
def _build(go: str, checkout: Path) -> str:
    """A checkout's tool, built into the user's cache: at once, if nothing has changed."""
    cache = os.environ.get("WSTORE_CACHE")
    folder = Path(cache) if cache else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "wstore"
    folder = folder / "bin"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{hashlib.sha256(os.fsencode(checkout)).hexdigest()[:16]}-{_NAME}"
    with tempfile.TemporaryDirectory(prefix=".building-", dir=folder) as tmp:
        made = Path(tmp) / _NAME
        with contextlib.suppress(OSError):  # Go leaves what is up to date as it is, and removes the link otherwise
            os.link(path, made)
        build = subprocess.run(
            [go, "build", "-trimpath", "-buildvcs=false", "-o", made, "./cmd/wstore"],
            cwd=checkout,
            check=False,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            text=True,
        )
        if build.returncode != 0:
            raise ConvertError(
                None,
                f"building the wstore tool in {checkout} failed; set WSTORE to one that is built:\n"
                f"{build.stderr.strip()}",
            )
        if not path.exists() or not path.samefile(made):
            made.replace(path)
    return str(path)


def main() -> NoReturn:
    """The console script ``wstore``: becomes the tool."""
    try:
        command = [find(), *sys.argv[1:]]
    except ConvertError as e:
        sys.exit(f"wstore: {e}")
    if os.name != "nt":
        os.execv(command[0], command)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the tool gets it too, and ends in its own way
    sys.exit(subprocess.call(command))


def run(args: Sequence[str], feed: Feed | None = None) -> bytes:
    """Runs the tool and returns what it printed; `feed` writes its standard input.

    A failure of the tool is an ArgumentError (its exit code 2) or a ConvertError, with its message. When `feed` fails,
    or on KeyboardInterrupt, the tool is ended, removes what it has begun, and the exception goes on.
    """
    command = [find(), *args]
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        try:
            child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL if feed is None else subprocess.PIPE,
                stdout=out,
                stderr=err,
                bufsize=0,
            )
        except OSError as e:
            raise ConvertError(None, f"{command[0]} can't be run: {e.strerror or e}; is it for this platform?") from e
        pipe = None if child.stdin is None else _Pipe(child.stdin)
        try:
            if feed is not None and pipe is not None:
                _fill(pipe, feed)
            code = child.wait()
        except BaseException:
            _end(child)
            raise
        finally:
            if child.stdin is not None:
                child.stdin.close()
        out.seek(0)
        err.seek(0)
        if code == 0 and (pipe is None or not pipe.broken):
            return out.read()
        raise _failure(code, err.read().decode("utf-8", "replace").strip().removeprefix("wstore: "))


class _Pipe(io.RawIOBase):
    """The tool's standard input. Keeps the exception of a failed write, which libraries may replace by their own."""

    def __init__(self, raw: Any) -> None:
        self._raw = raw
        self.error: BaseException | None = None
        self.broken = False  # whether the tool has stopped reading

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        size = len(view)
        try:
            while view:
                view = view[self._raw.write(view) :]
        except BaseException as e:
            self.error = e
            self.broken = isinstance(e, OSError)
            raise
        return size


def _fill(pipe: _Pipe, feed: Feed) -> None:
    try:
        feed(cast(IO[bytes], pipe))
        pipe._raw.close()
    except BaseException as e:
        if pipe.broken:  # the tool says why
            return
        if pipe.error is not None and pipe.error is not e:
            raise pipe.error from None
        raise


def _end(child: subprocess.Popen[bytes]) -> None:
    """Ends the tool. It has been told before its input ends, so it never takes that for the data's end."""
    child.terminate()
    if child.stdin is not None:
        child.stdin.close()
    try:
        child.wait(_PATIENCE)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def _failure(code: int, message: str) -> Exception:
    if code == 2:
        return ArgumentError(message)
    if not message:
        if code < 0:
            message = f"the wstore tool was killed by signal {-code} ({signal.strsignal(-code)})"
            if code == -getattr(signal, "SIGKILL", 9):
                message += "; is the machine out of memory? memory= limits what it takes"
        else:
            message = f"the wstore tool ended with exit code {code} and without a message"
    return ConvertError(code, message)
