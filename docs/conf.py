"""The site: `uv run --group docs sphinx-build -W --keep-going -b html docs docs/_build`.

Nothing is fetched. Before pages are read, the examples and the blocks of the diagnostics guide are
run, and what they print and draw becomes part of the pages; `DOCS_RUN` says how (see `running.py`).
"""

import sys
from importlib import metadata
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.config import Config

DOCS = Path(__file__).parent
sys.path[:0] = [str(DOCS), str(DOCS.parent)]

from running import write_gallery, write_guide  # noqa: E402

from tests.conftest import hash_of_kernels, use_cache_of  # noqa: E402

project = "pymc_xbart"
author = "The pymc_xbart developers"
project_copyright = author
release = metadata.version("pymc-xbart")

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
]
exclude_patterns = ["_build", "_generated/*.inc.md"]
templates_path = ["_templates"]
default_role = "py:obj"  # `name` in a docstring links to what has that name, and is code otherwise

myst_heading_anchors = 3
autodoc_typehints = "none"  # numpydoc's sections say them, with shapes
numpydoc_show_class_members = False  # the template of classes lists them
numpydoc_xref_param_type = False

html_theme = "pydata_sphinx_theme"
html_title = f"{project} {release}"
html_show_sourcelink = False
html_theme_options = {
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 8,
    "secondary_sidebar_items": ["page-toc"],
}
html_sidebars = {name: [] for name in ("index", "method", "exactness", "models", "diagnostics")}


def run_all(_app: Sphinx, _config: Config) -> None:
    """Run what the pages show, with compiled kernels of these very sources."""
    use_cache_of(hash_of_kernels())
    write_gallery()
    write_guide()


def show_guide(_app: Sphinx, docname: str, source: list[str]) -> None:
    """Let the guide be read with what its blocks have printed and drawn."""
    if docname == "diagnostics":
        source[0] = (DOCS / "_generated" / "diagnostics.inc.md").read_text(encoding="utf-8")


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.connect("config-inited", run_all)
    app.connect("source-read", show_guide)
