"""The form of dlfield's messages, checked wherever a test expects an error.

`check_messages()`, which each conftest calls, puts the check behind `pytest.raises`, and so behind
`support.errors.refused`. A message counts as dlfield's if the innermost line of its traceback is a
`raise` of the package, or a line of the package or a test that calls compiled code. In the second
case it may also be a message of others, which `FOREIGN` lists.
"""

import linecache
import re
from pathlib import Path

import dlfield
import pytest

PACKAGE, TESTS = Path(dlfield.__file__).parent, Path(__file__).parents[1]
FOLDERS = (PACKAGE, TESTS, TESTS.with_name("interop_tests"))

#: `<argument or thing>: ...`; or Python's and NumPy's form, with what to do.
FORM = re.compile(
    r"(?!expected|got|must|cannot)([^:\n]|:\S)+?: \S"
    r"|('[\w.]+' object|module 'dlfield') has no attribute '\w+'(; use |$)"
    r"|index -?\d+ is out of bounds for axis \d+ with extent \d+: expected "
)
#: Rust's {:?} of an Option, a Result or a struct; a full stop, and blanks at either end; a need
#: without a way out.
MISTAKE = re.compile(r"\b(Some|Ok|Err)\(|\w \{ \w+: |(?<!\.\.)\.$|\s$|^\s|: needs [^;\n]+$")
#: What Python, PyO3 (whose notes name the argument), NumPy and other libraries say.
FOREIGN = re.compile(
    r"'[\w.]+' object (cannot be interpreted|is not )|'None' is not an instance|PyCapsule_"
    r"|[\w.<>]+\(\) (missing|takes|got an unexpected|argument must be)|Can't (pickle|get local)"
    r"|\w+ expected \d+ arguments?, got"
    r"|type '[\w.]+' is not an acceptable|property ('\w+' )?(of|has) "
    r"|attribute '\w+' of .* not writable|Python int(eger)? |(?s:<.*) is not in list"
    r"|object of type '\w+' has no|int too large"
    r"|could not (convert|broadcast)|(expected|can't unpack) tuple of|invalid literal|data type '"
    r"|cannot (convert float|close exported|delete array|modify read|reshape array|resize|set W)"
    r"|slice (indices|step) |memoryview |operation forbidden on released|Existing exports of"
    r"|underlying buffer is not|a bytes-like object|__init__\(\): incompatible|Cannot cast |NumPy "
    r"|boolean index did|arrays used as|assignment destination|setting an array|shape mismatch: "
    r"|index -?\d+ is out of bounds for (size|axis \d+ with size) |an index can|incorrect number"
    r"|number of dimensions must|only integers|no implementation found for 'numpy|order must be"
    r"|strings are not allowed|ufunc '|The 'out' tuple|Integers to negative|The truth value"
    r"|(The )?numpy boolean "
    r"|Unable to avoid copy|can only convert|zero-size array to reduction"
)
KINDS = (
    TypeError,
    ValueError,
    BufferError,
    IndexError,
    AttributeError,
    OverflowError,
    RuntimeError,
)


def check_messages():
    """Check the message of every error that a test expects from now on."""
    raises = pytest.raises
    if raises.__module__ != __name__:
        pytest.raises = lambda *arguments, **options: Checked(raises(*arguments, **options))


class Checked:
    """An expected error. Its message, if it is dlfield's, has the form of the house."""

    def __init__(self, expected):
        self.expected = expected

    def __enter__(self):
        return self.expected.__enter__()

    def __exit__(self, kind, error, trace):
        caught = self.expected.__exit__(kind, error, trace)
        if caught and is_ours(error, trace):
            text = str(error)
            assert FORM.match(text), f"the message names no argument: {text}"
            assert not MISTAKE.search(text), f"the message is not for users: {text}"
        return caught


def is_ours(error, trace):
    """Return whether dlfield has raised an error."""
    while trace.tb_next is not None:
        trace = trace.tb_next
    path = Path(trace.tb_frame.f_code.co_filename)
    raises = linecache.getline(str(path), trace.tb_lineno).strip().startswith(("raise", "assert"))
    if not isinstance(error, KINDS) or not any(map(path.is_relative_to, FOLDERS)):
        return False
    if type(error).__module__ not in ("builtins", "dlfield"):
        return False
    if raises:
        return path.is_relative_to(PACKAGE)
    return not FOREIGN.match(str(error))
