"""Puts the command line tool into the wheel, where Go and its sources are; else the wheel reads files only.

A wheel for another platform is built with GOOS and GOARCH, as Go names them. With WSTORE_REQUIRE_CLI=1 a wheel
without the tool is an error.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# The tool is linked statically and needs no C library, so it runs under any.
_LINUX = {
    "386": ("2_17", "i686"),
    "amd64": ("2_17", "x86_64"),
    "arm": ("2_17", "armv7l"),
    "arm64": ("2_17", "aarch64"),
    "loong64": ("2_36", "loongarch64"),
    "ppc64le": ("2_17", "ppc64le"),
    "riscv64": ("2_31", "riscv64"),
    "s390x": ("2_17", "s390x"),
}
_OTHERS = {
    ("darwin", "amd64"): "macosx_12_0_x86_64",
    ("darwin", "arm64"): "macosx_12_0_arm64",
    ("windows", "386"): "win32",
    ("windows", "amd64"): "win_amd64",
    ("windows", "arm64"): "win_arm64",
}


class WithTool(BuildHookInterface[Any]):
    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel" or version == "editable":  # an editable package builds it when it is needed
            return
        sources = Path(self.root).parent
        go = shutil.which("go")
        if not (sources / "cmd" / "wstore" / "main.go").exists():
            self._without("its sources are not beside this folder, as they are in the repository")
        elif go is None:
            self._without("go is not on the PATH; see https://go.dev/dl")
        else:
            self._with(go, sources, build_data)

    def _without(self, why: str) -> None:
        text = f"wstore: built without the command line tool, so it reads files but doesn't write them: {why}"
        if os.environ.get("WSTORE_REQUIRE_CLI", "0") not in ("", "0"):
            raise RuntimeError(f"{text} (WSTORE_REQUIRE_CLI is set)")
        self.app.display_warning(text)

    def _with(self, go: str, sources: Path, build_data: dict[str, Any]) -> None:
        said = subprocess.run([go, "env", "-json"], cwd=sources, check=True, capture_output=True)
        env = json.loads(said.stdout)
        self._folder = tempfile.mkdtemp(prefix="wstore-build-")
        path = Path(self._folder) / ("wstore.exe" if env["GOOS"] == "windows" else "wstore")
        build = [go, "build", "-trimpath", "-ldflags=-s -w", "-o", str(path), "./cmd/wstore"]
        made = self._run(build, sources)
        if made.returncode != 0 and "VCS" in made.stderr:  # git refuses a checkout that is someone else's
            made = self._run([*build[:2], "-buildvcs=false", *build[2:]], sources)
        if made.returncode != 0:
            raise RuntimeError(f"building the command line tool failed:\n{made.stderr.strip()}")
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{_platform(env)}"
        for file in (path, sources / "LICENSE", sources / "THIRD_PARTY_NOTICES"):  # what is linked in asks for these
            build_data["force_include"][str(file)] = f"wstore/_bin/{file.name}"

    def _run(self, command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
        env = {**os.environ, "CGO_ENABLED": "0"}
        return subprocess.run(command, cwd=folder, env=env, check=False, capture_output=True, text=True)

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if hasattr(self, "_folder"):
            shutil.rmtree(self._folder)


def _platform(env: dict[str, str]) -> str:
    """The wheel's platform for Go's."""
    system, machine = env["GOOS"], env["GOARCH"]
    if system == "linux" and machine in _LINUX:
        least, name = _LINUX[machine]
        return f"manylinux_{least}_{name}.musllinux_1_1_{name}"
    if (system, machine) in _OTHERS:
        return _OTHERS[system, machine]
    if (system, machine) != (env["GOHOSTOS"], env["GOHOSTARCH"]):
        raise RuntimeError(f"no name of a wheel's platform is known for GOOS={system} GOARCH={machine}")
    return sysconfig.get_platform().replace("-", "_").replace(".", "_")
