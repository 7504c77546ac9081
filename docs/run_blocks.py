"""Run the Python blocks of a page in order, in one namespace, and write what each of them shows.

`python run_blocks.py PAGE` writes 00.inc.md, 01.inc.md, ... into the current folder, one for each
block: what it has printed, the value of its last line, as an interactive session shows it, and its
figures.
"""

import ast
import sys
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
from running import BLOCK, fence


def main() -> None:
    """Run the page that is named on the command line."""
    page = Path(sys.argv[1])
    printed: list[str] = []
    # Only what the page prints counts: progress bars write to standard output, too.
    names = {"print": lambda *values: printed.append(" ".join(map(str, values)))}
    for number, block in enumerate(BLOCK.findall(page.read_text(encoding="utf-8"))):
        printed.clear()
        value = run_block(block, names)
        figures = save_figures(number, page.stem)
        if value is not None and not figures:  # a picture stands for the axes that it is drawn in
            printed.append(repr(value))
        shown = [fence("text", *printed)] if printed else []
        Path(f"{number:02}.inc.md").write_text(join(shown + figures), encoding="utf-8")


def run_block(block: str, names: dict[str, Any]) -> Any:
    """Run a block, and return the value of its last line if that is an expression."""
    tree = ast.parse(block)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "page", "exec"), names)
    return last and eval(compile(ast.Expression(last.value), "page", "eval"), names)


def save_figures(number: int, page: str) -> list[str]:
    """Save and close all figures; return Markdown that shows them."""
    files = []
    for figure in plt.get_fignums():
        files.append(f"{number:02}_{figure}.png")
        plt.figure(figure).savefig(files[-1], dpi=100, bbox_inches="tight")
        plt.close(figure)
    return [f"![](_generated/{page}/{file})" for file in files]


def join(parts: list[str]) -> str:
    """Parts with empty lines around them."""
    return "".join(f"\n{part}\n" for part in parts)


if __name__ == "__main__":
    main()
