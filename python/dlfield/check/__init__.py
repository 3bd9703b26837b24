"""A checker: `bind` in front of every call of GT4Py, which then goes on as without it.

It only asks: a call is planned as `bind` would, nothing is acquired, read or run twice. Its files,
each of which uses only those above it::

    report      what a check has found, and the summary
    place       the line of the user's program that makes a call
    asking      asks `bind` about one call
    in_front    the functions in front of GT4Py's own
    session     `checking`, and all checks that are active
    command     ``python -m dlfield check``

``dlfield.pytest_check`` is the plugin for pytest.
"""
