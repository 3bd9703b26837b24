"""Configuration of the site: `make docs`."""

import re

import dlfield
from pygments.lexers import RustLexer
from sphinx.highlighting import lexers

project = "dlfield"
author = "The dlfield authors"
copyright = author
version = release = dlfield.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
]
#: What is generated for those who check it, and what the pages are measured from.
exclude_patterns = ["_build", "sources.md"]
templates_path = ["_templates"]
html_theme = "pydata_sphinx_theme"
html_title = "dlfield"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_theme_options = {
    "navbar_align": "left",
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_sidebars = {"index": []}
html_context = {"default_mode": "auto"}  # else the theme complains of no mode in the console
html_domain_indices = False
html_show_sourcelink = False

myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence"]
autosummary_generate = True
autodoc_typehints = "none"
default_role = "py:obj"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
copybutton_exclude = ".linenos, .gp, .go"
#: Blocks that rustdoc shows and does not compile.
lexers["rust,ignore"] = RustLexer()


def _without_own(_app, _what, _name, _object, _options, signature, returned):
    """Leave the object itself out of the signature of a compiled function."""
    cut = re.sub(r"(?<=\()(\$(self|cls|module)|cls, /),? ?", "", signature or "")
    return (cut or signature, returned)


def setup(app):
    """Tell Sphinx."""
    app.connect("autodoc-process-signature", _without_own, priority=400)  # before numpydoc
