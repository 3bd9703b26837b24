"""GT4Py's own tests with `dlfield.gt4py_storage` in place of `gt4py.storage`: a plugin for pytest.

`make gt4py-suite SOURCE=<checkout of GT4Py>` runs them so.
"""


def pytest_configure():
    import gt4py.storage
    from dlfield import gt4py_storage

    for name in gt4py_storage.__all__:
        setattr(gt4py.storage, name, getattr(gt4py_storage, name))
        setattr(gt4py.storage.cartesian.interface, name, getattr(gt4py_storage, name))
