"""A page that shows results as JupyterLab does, and pictures for it."""

#: Colours of JupyterLab's light and dark themes, and its stripes in tables.
PAGE = """<!doctype html>
<meta charset="utf-8">
<style>
  body {{ margin: 8px; font: 14px system-ui, sans-serif }}
  body {{ background: #fff; color: rgb(0 0 0 / 87%) }}
  body.dark {{ background: #111; color: rgb(255 255 255 / 87%) }}
  table {{ border-collapse: collapse; font-size: 12px }}
  td, th {{ padding: 0.5em; text-align: right; max-width: none }}
  tr:nth-child(odd) {{ background: #f5f5f5 }}
  .dark tr:nth-child(odd) {{ background: #212121 }}
</style>
<body class="{scheme}">{outputs}
"""


def page(scheme, outputs):
    """Show what `_repr_html_` gave, in light or dark."""
    shown = "".join(f"<div>{output}</div>" for output in outputs)
    return PAGE.format(scheme=scheme, outputs=shown)
