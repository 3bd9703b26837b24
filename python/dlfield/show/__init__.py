"""Explanations, drawings, and HTML for notebooks.

Its files, each of which uses only those above it::

    drawing        how a storage lies in memory, as SVG
    html           tables of a notebook
    explanation    `explain`
"""
