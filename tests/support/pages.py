"""Blocks of Python in the documentation: running them, and comparing what they print."""

import contextlib
import io
import re
import sys
import types


def python_blocks(text):
    """Find the blocks of a page."""
    return re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)


def matches(expected, got):
    """Compare texts in which three dots stand for anything; how lines are broken does not count."""
    parts = [re.escape(" ".join(part.split())) for part in expected.split("...")]
    return re.fullmatch(r"\s?.*?\s?".join(parts), " ".join(got.split())) is not None


def run_blocks(blocks, name, folder, monkeypatch):
    """Run blocks one after the other as one module, and compare what each prints or raises."""
    assert blocks
    module = types.ModuleType(name)
    monkeypatch.setitem(sys.modules, name, module)
    for number, block in enumerate(blocks):
        file = folder / f"block_{number}.py"  # GT4Py reads a definition from its file
        file.write_text(block, "utf-8")
        module.__file__ = str(file)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            try:
                exec(compile(block, file, "exec"), vars(module))
            except Exception as error:
                print(f"{type(error).__name__}: {error}")
        expected, got = "\n".join(re.findall(r"^# -> (.*)$", block, re.M)), printed.getvalue()
        assert matches(expected, got), (
            f"block {number} said\n{got}\nand should have said\n{expected}"
        )
