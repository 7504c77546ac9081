"""The site: `uv run --group docs sphinx-build -W --keep-going -b html docs docs/_build`.

Nothing is fetched. Before pages are read, the examples and the blocks of the guides are run, and
what they print and draw becomes part of the pages; `DOCS_RUN` says how (see `running.py`).
"""

import sys
from importlib import metadata
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.util.inspect import signature, stringify_signature

DOCS = Path(__file__).parent
sys.path[:0] = [str(DOCS), str(DOCS.parent)]

from running import GUIDES, write_gallery, write_guide  # noqa: E402

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
exclude_patterns = ["_build", "**/*.inc.md"]  # the latter become parts of pages
templates_path = ["_templates"]
default_role = "py:obj"  # `name` in a docstring links to what has that name, and is code otherwise

myst_heading_anchors = 3
autodoc_typehints = "none"  # numpydoc's sections say them, with shapes
numpydoc_show_class_members = False  # the template of classes lists them
numpydoc_xref_param_type = False

html_theme = "pydata_sphinx_theme"
html_title = project
html_show_sourcelink = False
toc_object_entries = False  # a page of the reference has a single one
html_theme_options = {
    "header_links_before_dropdown": 8,
    "navbar_persistent": ["search-button"],
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
}
WITHOUT_SUBPAGES = (
    *("models", *GUIDES, "method", "exactness"),
    *("comparison", "performance", "pymc_bart"),
)
html_sidebars = {page: [] for page in ("index", *WITHOUT_SUBPAGES)}


def run_all(_app: Sphinx, _config: Config) -> None:
    """Run what the pages show, with compiled kernels of these very sources."""
    use_cache_of(hash_of_kernels())
    write_gallery()
    for name in GUIDES:
        write_guide(name)


def show_guide(_app: Sphinx, docname: str, source: list[str]) -> None:
    """Let guides be read with what their blocks have printed and drawn."""
    if docname in GUIDES:
        source[0] = (DOCS / "_generated" / f"{docname}.inc.md").read_text(encoding="utf-8")


def show_init(
    _app: Sphinx, what: str, _name: str, item: Any, _options: Any, _signature: str, _result: str
) -> tuple[str, str] | None:
    """Classes are called as `__init__` says, where a base's `__new__` takes anything."""
    if what != "class" or "__init__" not in vars(item):
        return None
    of_init = signature(item.__init__, bound_method=True)
    return stringify_signature(of_init, show_annotation=False), ""


def setup(app: Sphinx) -> None:
    """Connect the functions above to what Sphinx does."""
    app.connect("config-inited", run_all)
    app.connect("source-read", show_guide)
    app.connect("env-get-outdated", lambda *_: list(GUIDES))  # what they show may have changed
    app.connect("autodoc-process-signature", show_init)
