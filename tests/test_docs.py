"""The site's reference is complete."""

import re
from pathlib import Path

import pymc_xbart

PAGE = Path(__file__).parents[1] / "docs" / "api.md"


def test_the_reference_lists_every_public_name_once():
    listed = re.findall(r"^   (\w+)$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert sorted(listed) == sorted({*pymc_xbart.__all__} - {"__version__"})
