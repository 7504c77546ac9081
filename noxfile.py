"""Test sessions: `uv run nox` runs the default ones, `uv run nox -s oldest` a single one.

Those that need only a checkout use the environment of `uv run`. The others build one of their own
from `sys.executable`, since not every machine lets uv find or download an interpreter.
"""

import os
import sys
from pathlib import Path

import nox
from packaging.requirements import Requirement

ROOT = Path(__file__).parent
FIT_SMALL = ROOT / "tests" / "packaging" / "fit_small.py"
KERNELS_NEED = {"numpy", "numba", "pytest", "pytest-xdist"}
UV = os.environ.get("UV", "uv")  # set by `uv run`, for machines where uv is not on the path

PROJECT = nox.project.load_toml(ROOT / "pyproject.toml")

nox.needs_version = ">=2026.4"
nox.options.default_venv_backend = "venv"
nox.options.sessions = ["tests", "nojit", "kernels", "wheel", "oldest"]


def run_pytest(session: nox.Session, *args: str, env: dict[str, str] | None = None) -> None:
    session.run(UV, "run", "pytest", *args, *session.posargs, env=env, external=True)


def install(session: nox.Session, *args: str) -> None:
    here = session.virtualenv.location
    session.run_install(UV, "pip", "install", "--python", here, *args, external=True)


def build_wheel(session: nox.Session) -> str:
    folder = session.create_tmp()
    for old in Path(folder).glob("*.whl"):
        old.unlink()
    args = ("--wheel", "--python", sys.executable, "--out-dir", folder)
    session.run(UV, "build", *args, str(ROOT), external=True)
    (wheel,) = Path(folder).glob("*.whl")
    return str(wheel)


def fit_small(session: nox.Session) -> None:
    # Isolated, and outside the checkout: what is imported is the installed wheel.
    with session.chdir(session.create_tmp()):
        session.run("python", "-I", str(FIT_SMALL))


@nox.session(venv_backend="none")
def tests(session: nox.Session) -> None:
    """All tests but the slow ones."""
    run_pytest(session)


@nox.session(venv_backend="none")
def slow(session: nox.Session) -> None:
    """The slow tests."""
    run_pytest(session, "-m", "slow")


@nox.session(venv_backend="none")
def nojit(session: nox.Session) -> None:
    """Kernel tests as plain Python, as a debugger and coverage see them."""
    run_pytest(session, "tests/kernels", env={"NUMBA_DISABLE_JIT": "1"})


@nox.session(venv_backend="none")
def docs(session: nox.Session) -> None:
    """The site, with what the examples print and draw; `DOCS_RUN=skip` runs none of them."""
    command = ("sphinx-build", "-W", "--keep-going", "-q", "-b", "html", "docs", "docs/_build")
    session.run(UV, "run", "--group", "docs", *command, *session.posargs, external=True)


@nox.session
def kernels(session: nox.Session) -> None:
    """Kernel tests where nothing but NumPy and Numba is installed."""
    declared = [*PROJECT["project"]["dependencies"], *PROJECT["dependency-groups"]["dev"]]
    install(session, *(line for line in declared if Requirement(line).name in KERNELS_NEED))
    session.run("python", "-m", "pytest", "tests/kernels", *session.posargs)


@nox.session
def wheel(session: nox.Session) -> None:
    """The built wheel, installed alone, fits a model."""
    install(session, build_wheel(session))
    fit_small(session)


@nox.session
def oldest(session: nox.Session) -> None:
    """So it does with the oldest versions that pyproject.toml allows."""
    install(session, "--resolution", "lowest-direct", "--requirements", "pyproject.toml")
    install(session, "--no-deps", build_wheel(session))
    fit_small(session)
