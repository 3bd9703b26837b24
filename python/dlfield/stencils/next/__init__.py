"""Programs and operators of ``gt4py.next``: what they declare and which points they touch."""
