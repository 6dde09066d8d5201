"""Sphinx's settings. `sphinx-build -W docs build/docs` makes the site."""

import re
from importlib.metadata import version as version_of
from pathlib import Path

from sphinx.application import Sphinx

project = "scrapy-rep"
copyright = "the scrapy-rep developers"  # noqa: A001 - Sphinx's name for it
version = release = version_of("scrapy-rep")

extensions = ["myst_parser", "sphinx.ext.autodoc"]
html_theme = "furo"
html_title = "scrapy-rep"
html_static_path = ["narrow.css"]
html_css_files = ["narrow.css"]

# Links to headings work as in repository viewers.
myst_heading_anchors = 3
# Docstrings have `code` in single backticks.
default_role = "code"
autodoc_typehints = "description"
autodoc_member_order = "bysource"
autodoc_class_signature = "separated"

# Pages of the site whose text is a file outside of this folder.
FILES = {"changelog": "CHANGELOG.md", "contributing": ".github/CONTRIBUTING.md"}


INDEX_COMMENT = re.compile(r"^<!-- index: (.*) -->\n(#+ .*)$", re.MULTILINE)


def index_terms(_app: Sphinx, _name: str, source: list[str]) -> None:
    """Add the words of `<!-- index: 403, HTTP 403 -->` above a heading to the index.

    The search finds a lone number only in the index. Repository viewers do not show the comment.
    """
    source[0] = INDEX_COMMENT.sub(lambda found: f"{found[2]}\n\n```{{index}} {found[1]}\n```", source[0])


def read_files(_app: Sphinx, name: str, source: list[str]) -> None:
    """Read the text of the pages in FILES from their files, and turn links to these files into links to the pages."""
    if name in FILES:
        source[0] = Path(__file__).parents[1].joinpath(FILES[name]).read_text("utf-8").replace("](docs/", "](")
    for page, file in FILES.items():
        source[0] = source[0].replace(f"](../{file})", f"]({page}.md)").replace(f"]({file})", f"]({page}.md)")


def setup(app: Sphinx) -> None:
    app.connect("source-read", read_files)
    app.connect("source-read", index_terms)
