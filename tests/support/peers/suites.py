"""The suites of `suites.toml`."""

import importlib.util
import tomllib
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path


@dataclass(frozen=True)
class Suite:
    """Tests of another project."""

    title: str
    #: The function of `adaptors` that gives them storages.
    adaptor: str
    #: Files, below the package or the checkout.
    files: tuple[str, ...]
    #: The package that has the tests, or the folder of its checkout.
    package: str = ""
    source: str = ""
    #: The version of the checkout.
    version: str = ""
    #: C++ of an extension module that they test, below the checkout; compiled with nanobind's own.
    extension: str = ""
    #: An expression that chooses tests.
    select: str = ""
    #: More options of pytest.
    options: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    #: Why tests must fail, by a pattern of their names.
    deviations: dict[str, str] = field(default_factory=dict)

    def folder(self, sources: Path | None) -> Path | None:
        """Return where the tests are, if they are here."""
        if self.package:
            spec = importlib.util.find_spec(self.package)
            return Path(spec.origin).parent if spec and spec.origin else None
        folder = sources / self.source if sources else None
        return folder if folder and folder.is_dir() else None

    def deviation(self, test: str) -> tuple[str, str] | None:
        """Return the pattern that a test has, and the reason."""
        name = test.partition("::")[2]
        found = ((one, why) for one, why in self.deviations.items() if fnmatchcase(name, one))
        return next(found, None)


def _read() -> dict[str, Suite]:
    table = tomllib.loads((Path(__file__).parent / "suites.toml").read_text("utf-8"))
    return {name: Suite(**dict(map(_entry, one.items()))) for name, one in table.items()}


def _entry(entry: tuple[str, object]) -> tuple[str, object]:
    name, value = entry
    return name, tuple(value) if isinstance(value, list) else value


SUITES = _read()
