"""Other projects' own tests with storages underneath.

Its files::

    suites.toml   which tests there are, and those that must fail, each with the reason
    adaptors      how each suite gets storages in place of arrays
    plugin        the plugin of pytest that adapts one suite, and counts
    __main__      runs all suites, and prints the table of docs/reliability.md

No test of another project is kept here: a suite is in an installed package, or in a checkout.
"""
