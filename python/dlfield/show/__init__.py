"""What a person looks at: explanations, drawings, and both as HTML.

Its files, each of which uses only those above it::

    drawing        how a storage lies in memory, as SVG
    html           tables of a notebook
    explanation    `explain`
"""
