"""How Sphinx builds the guide and the reference: ``make docs``, without any network."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import majorant

sys.path.insert(0, str(Path(__file__).parent))

project = "majorant"
author = "the majorant developers"
copyright = "the majorant developers"
version = release = majorant.__version__

extensions = [
    "made",
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx_gallery.gen_gallery",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build", "_templates", "figures", "examples", "generated/reports"]
templates_path = ["_templates"]

myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3
mathjax_path = "tex-svg.js"  # one file, which fetches nothing

autosummary_generate = True
autosummary_imported_members = True
autodoc_typehints = "none"
autodoc_member_order = "groupwise"
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False
# What is inherited from scikit-learn links to scikit-learn's own guide.
suppress_warnings = ["ref.ref"]

sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "gallery",
    "abort_on_example_error": True,
    "show_memory": False,
    "show_signature": False,
    "download_all_examples": False,
    "min_reported_time": 1e9,
    "write_computation_times": False,
    "plot_gallery": True,
    "image_scrapers": ("matplotlib",),
    "reset_modules": ("matplotlib",),
}

html_theme = "pydata_sphinx_theme"
html_title = "majorant"
html_theme_options = {
    "show_toc_level": 2,
    "header_links_before_dropdown": 6,
    "navigation_with_keys": False,
    "use_edit_page_button": False,
    "secondary_sidebar_items": ["page-toc"],
}
html_sidebars = {"index": [], "search": [], "genindex": []}
MATHJAX = find_spec("sphinx-mathjax-offline")  # which brings its files; they are copied here, all but one left out
assert MATHJAX and MATHJAX.origin, "the site needs majorant[docs]"
html_static_path = ["_static", str(Path(MATHJAX.origin).parent / "static" / "mathjax" / "tex-svg.js")]
html_css_files = ["site.css"]
html_show_sourcelink = False


def setup(app: Any) -> None:
    """Leave out what scikit-learn makes for the routing of metadata: it has no words of its own."""
    app.connect("autodoc-skip-member", lambda *event: True if event[2].endswith("_request") else None)
