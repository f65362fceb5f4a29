"""What tests share: the programs of the repository, built by the Makefile or else here."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("wstore", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("wstore")

ROOT = Path(__file__).parents[2]


def program(variable: str, package: str, folder: Path) -> Path:
    """The path in an environment variable, or that of a program built anew."""
    if given := os.environ.get(variable):
        return Path(given).resolve()
    go = shutil.which("go")
    if go is None:
        pytest.fail(f"set {variable} to {package}, built with go build, or put go on the PATH", pytrace=False)
    path = folder / package.rpartition("/")[2]
    subprocess.run([go, "build", "-o", path, package], cwd=ROOT, check=True)
    return path


@pytest.fixture(scope="session")
def cli(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The command line tool."""
    return program("WSTORE", "./cmd/wstore", tmp_path_factory.mktemp("cli"))


@pytest.fixture(scope="session")
def differ(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The other side of test_differential."""
    return program("WSTORE_DIFFER", "./tools/differ", tmp_path_factory.mktemp("differ"))
