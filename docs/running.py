"""Run what the site shows: the examples, and the Python blocks of the guides.

`DOCS_RUN` says how: "fast" (default), examples with few rows and draws; "full", as a user would,
which takes the better part of an hour; "skip", not at all: pages show what the last run has left.
"""

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

DOCS = Path(__file__).parent
GENERATED = DOCS / "_generated"
EXAMPLES = DOCS.parent / "examples"
GUIDES = ("predictions", "diagnostics")  # pages whose blocks run one after another
MODES = ("fast", "full", "skip")
BLOCK = re.compile(r"^```python\n(.*?)^```\n", flags=re.DOTALL | re.MULTILINE)
WIDE = "---\nhtml_theme.sidebar_secondary.remove: true\n---"  # what scripts print has long lines
FAST = "Made with `--fast`, from few rows and draws: it shows what one gets to see, and no results."


def read_mode() -> str:
    """How to run things, as the environment says."""
    mode = os.environ.get("DOCS_RUN", "fast")
    if mode not in MODES:
        msg = f"DOCS_RUN is {mode!r}. Set it to one of {', '.join(MODES)}, or leave it out."
        raise ValueError(msg)
    return mode


def run(folder: Path, *command: str | Path) -> str:
    """What a Python script prints that is run in `folder`, as a process of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        [sys.executable, *command],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env=os.environ | {"MPLBACKEND": "Agg", "COLUMNS": "100"},
    )
    if done.returncode:
        msg = f"{' '.join(map(str, command))} failed:\n{done.stderr[-4000:]}"
        raise RuntimeError(msg)
    return done.stdout


def write_gallery() -> None:
    """A page for each example, and the list of them."""
    folder = GENERATED / "examples"
    folder.mkdir(parents=True, exist_ok=True)
    scripts = sorted(EXAMPLES.glob("*.py"), key=lambda path: (path.stem != "quickstart", path.stem))
    contents = []
    for script in scripts:
        title, text = read_docstring(script)
        shown = show_example(script, folder)
        path = f"../../../examples/{script.name}"
        source = fence(f"{{literalinclude}} {path}", ":language: python")
        page = [WIDE, f"# {title}", text, shown, "## The script", source]
        (folder / f"{script.stem}.md").write_text("\n\n".join(page), encoding="utf-8")
        contents.append(entry(script.stem, title, has_figure=bool(shown)))
    pages = [f"_generated/examples/{script.stem}" for script in scripts]
    contents.append(fence("{toctree}", ":hidden:", "", *pages))
    (GENERATED / "gallery.inc.md").write_text("\n\n".join(contents), encoding="utf-8")


def read_docstring(script: Path) -> tuple[str, str]:
    """First line of a script's docstring, without its full stop, and the rest."""
    docstring = ast.get_docstring(ast.parse(script.read_text(encoding="utf-8")))
    title, _, text = str(docstring).partition("\n\n")
    return title.rstrip("."), text


def show_example(script: Path, folder: Path) -> str:
    """Markdown of a script's figure and of what it has printed, in this run or the last one."""
    mode, kept = read_mode(), folder / f"{script.stem}.inc.md"
    if mode != "skip":
        figure = f"{script.stem}.png"
        fast = ["--fast"] if mode == "fast" else []
        command = (DOCS / "run_example.py", script, "--figure", figure, *fast)
        printed = fence("text", run(folder, *command).strip("\n"))
        note = [FAST] if fast else []
        parts = ["## Figure", *note, f"![{script.stem}]({figure})", "## What it prints", printed]
        kept.write_text("\n\n".join(parts), encoding="utf-8")
    return kept.read_text(encoding="utf-8") if kept.exists() else ""


def entry(name: str, title: str, *, has_figure: bool) -> str:
    """An example in the list: its title and its figure, which lead to its page."""
    page = f"_generated/examples/{name}"
    figure = f"[![{title}]({page}.png)]({page}.md)"
    return f"**[{title}]({page}.md)**" + (f"\n\n{figure}" if has_figure else "")


def write_guide(name: str) -> None:
    """A guide, with what each block has printed and drawn behind it."""
    source, folder = DOCS / f"{name}.md", GENERATED / name
    if read_mode() != "skip":
        shutil.rmtree(folder, ignore_errors=True)
        run(folder, DOCS / "run_blocks.py", source)
    page = source.read_text(encoding="utf-8")
    shown = [path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.inc.md"))]
    if len(shown) == len(BLOCK.findall(page)):
        behind = iter(shown)
        page = BLOCK.sub(lambda block: block[0] + next(behind), page)
    (GENERATED / f"{name}.inc.md").write_text(page, encoding="utf-8")


def fence(kind: str, *lines: str) -> str:
    """A fenced block or directive of Markdown."""
    return "\n".join([f"```{kind}", *lines, "```"])
