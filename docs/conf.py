"""Configuration of the site: `make docs`."""

import ast
import inspect
import re
from pathlib import Path

import dlfield
from pygments.lexers import RustLexer
from sphinx.highlighting import lexers
from sphinx.pycode import ModuleAnalyzer

project = "dlfield"
author = "The dlfield authors"
copyright = author
version = release = dlfield.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
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
    "logo": {"text": f"dlfield {version}"},
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
#: Values in texts, such as "IJK", are code.
smartquotes = False
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
copybutton_exclude = ".linenos, .gp, .go"
#: Blocks that rustdoc shows and does not compile.
lexers["rust,ignore"] = RustLexer()


#: Files with functions of which `**options` are those of a storage.
ROOM = Path(dlfield.__file__).parent
WITH_OPTIONS = [ROOM / "_core.pyi", ROOM / "xarray" / "labels.py"]


def _is_open(node):
    """Tell if a function of a file takes the options of a storage."""
    kept = node.args.kwarg if isinstance(node, ast.FunctionDef) else None
    return kept is not None and ast.unparse(kept.annotation or kept) == "Unpack[StorageOptions]"


NODES = [node for file in WITH_OPTIONS for node in ast.walk(ast.parse(file.read_text("utf-8")))]
OPEN = {node.name for node in NODES if _is_open(node)}
#: The options in the order in which `empty` describes them.
OPTIONS = re.findall(r"^(\w+) : ", dlfield.empty.__doc__.partition("\ndtype : ")[2], re.M)


def _real_parameters(_app, what, name, given, _options, signature, returned):
    """Show the options instead of `**options`, and leave out the object itself."""
    if what == "class" and issubclass(given, dlfield.Storage):
        name, signature = "storage", str(inspect.signature(dlfield.storage))
    shown = re.sub(r"(?<=\()(\$(self|cls|module)|cls, /),? ?", "", signature or "")
    if name.rpartition(".")[2] in OPEN:
        star = "" if "*, " in shown else "*, "
        shown = shown.replace("**options", star + ", ".join(f"{one}=..." for one in OPTIONS))
    return (shown or signature, returned)


#: Examples of compiled functions by name. Those of other functions are in their docstrings.
EXAMPLES_FILE = Path(__file__).parent / "examples.txt"
TEXTS = EXAMPLES_FILE.read_text("utf-8").split("\n\n")[1:]
EXAMPLES = {name: lines for name, *lines in map(str.splitlines, TEXTS)}


def _with_example(app, _what, name, _object, _options, lines):
    """Put the example of a compiled function behind its docstring."""
    module, _, own = name.rpartition(".")
    if module == "dlfield" and own in EXAMPLES:
        app.env.note_dependency(str(EXAMPLES_FILE))
        lines += ["", "Examples", "--------", *EXAMPLES[own], ""]


STUB = ModuleAnalyzer.for_file(ROOM / "_core.pyi", "dlfield._core")


def _module(_app, module, name):
    """Look for what is written in Rust in the stub."""
    known = module == "dlfield" and name in STUB.find_tags()
    return STUB.modname if known else None


def _source(_app, module):
    """Show the stub, which has the signatures and texts of what is written in Rust."""
    return (STUB.code, STUB.find_tags()) if module == STUB.modname else None


def setup(app):
    """Tell Sphinx."""
    app.connect("viewcode-follow-imported", _module)
    app.connect("viewcode-find-source", _source)
    app.connect("autodoc-process-docstring", _with_example, priority=400)  # before numpydoc
    app.connect("autodoc-process-signature", _real_parameters, priority=400)  # before numpydoc
