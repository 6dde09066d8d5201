"""Sphinx's settings. `sphinx-build -W docs build/docs` makes the site."""

import os
import re
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.search.en import SearchEnglish
from sphinx.transforms import SphinxTransform

project = "scrapy-rep"
copyright = "the scrapy-rep developers"  # noqa: A001 - Sphinx's name for it
version = release = version_of("scrapy-rep")

extensions = ["myst_parser", "sphinx.ext.autodoc"]
# Links to Scrapy's classes need the network: the published site and `tox -e links` have them, a local build has text.
if "READTHEDOCS" in os.environ or tags.has("links"):  # noqa: F821 - Sphinx's name for the `-t` options
    extensions.append("sphinx.ext.intersphinx")
intersphinx_mapping = {"scrapy": ("https://docs.scrapy.org/en/latest/", None)}
# Sites of examples, and files of this repository.
linkcheck_ignore = [r"https?://([^/]*\.)?(example(\.(com|org|net))?|localhost)(:\d+)?(/|$)", r"\.\./"]
html_theme = "furo"
html_title = "scrapy-rep"
html_static_path = ["site.css"]
html_css_files = ["site.css"]
html_search_scorer = str(Path(__file__).with_name("search.js"))

# Links to headings work as in repository viewers.
myst_heading_anchors = 3
# Docstrings have `code` in single backticks.
default_role = "code"
autodoc_typehints = "description"
autodoc_member_order = "bysource"
autodoc_class_signature = "separated"

# Pages of the site whose text is a file outside of this folder.
FILES = {"changelog": "CHANGELOG.md", "contributing": ".github/CONTRIBUTING.md"}
LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)([^)]*)\)")  # to a file, perhaps with an anchor

INDEX_COMMENT = re.compile(r"^<!-- index: (.*) -->\n(#+ .*)$", re.MULTILINE)


def index_terms(_app: Sphinx, _name: str, source: list[str]) -> None:
    """Make `<!-- index: 403, access denied -->` above a heading searchable, though repository viewers do not show it.

    Each phrase becomes an index entry of the heading, listed before other results (`!`). Its words become keywords of
    the page, so that the search finds them in any order.
    """
    phrases: list[str] = []

    def entries(found: re.Match[str]) -> str:
        phrases.extend(found[1].split(", "))
        return f"{found[2]}\n\n```{{index}} ! {found[1].replace(', ', ', ! ')}\n```"

    text = INDEX_COMMENT.sub(entries, source[0])
    if words := sorted({word for phrase in phrases for word in re.findall(r"\w+", phrase)}):
        text += f"\n```{{eval-rst}}\n.. meta::\n   :keywords: {','.join(words)}\n```\n"
    source[0] = text


class EntriesOfSections(SphinxTransform):
    """Let each index entry lead to its section, so that a result of the search shows the heading and the text."""

    default_priority = 800  # before Sphinx collects the entries

    def apply(self, **_: Any) -> None:
        for node in self.document.findall(addnodes.index):
            if isinstance(node.parent, nodes.section):
                (target, *_) = node.parent["ids"]
                node["entries"] = [(kind, text, target, *rest) for kind, text, _own_target, *rest in node["entries"]]


class Search(SearchEnglish):
    """Sphinx's search in English, with more words that say nothing here, and with statuses.

    Sphinx leaves numbers out of its index, so `403` becomes the word `http403`. docs/search.js does so for questions.
    """

    stopwords = SearchEnglish.stopwords | {
        *("robots", "txt", "scrapy", "can", "get", "give", "gives", "mean", "means", "need", "return", "returns"),
        *("say", "says", "use", "using", "want", "will"),
        *("add", "adds", "added", "bug", "feat", "fix", "implement", "problem", "problems", "should", "way", "would"),
    }

    def split(self, input: str) -> list[str]:  # noqa: A002 - Sphinx's name for it
        return super().split(re.sub(r"\b[1-5]\d\d\b", r"http\g<0>", input))


def read_files(_app: Sphinx, name: str, source: list[str]) -> None:
    """Read the text of the pages in FILES from their files, and make all links lead somewhere on the site: to the page
    of such a file, or to a copy of another file of the repository, such as a page for contributors."""
    file = Path(FILES.get(name, f"docs/{name}.md"))
    pages = {f"../{path}": f"{page}.md" for page, path in FILES.items()}

    def link(found: re.Match[str]) -> str:
        path = os.path.relpath(file.parent / found[1], "docs")
        copied = path.startswith("../") and path not in pages
        return f"](path:{path})" if copied else f"]({pages.get(path, path)}{found[2]})"

    text = Path(__file__).parents[1].joinpath(file).read_text("utf-8") if name in FILES else source[0]
    source[0] = LINK.sub(link, text)


def setup(app: Sphinx) -> None:
    app.add_search_language(Search)
    app.add_transform(EntriesOfSections)
    app.connect("source-read", read_files)
    app.connect("source-read", index_terms)
