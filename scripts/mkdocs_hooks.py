"""For the documentation site: links into the repository become plain text, and tables of settings come from the code.

The site has no pages outside of docs/. A line `settings: alebo.methods.ALEBO` becomes a table of the settings of that class.
"""

import re
from importlib import import_module


def on_page_markdown(markdown, **_):
    markdown = re.sub(r"^settings: ([\w.]+)\.(\w+)$", _table, markdown, flags=re.MULTILINE)
    return re.sub(r"\[([^\]]+)\]\(\.\./[^)]*\)", r"\1", markdown)


def _table(found):
    listed = getattr(import_module(found[1]), found[2]).settings()
    rows = [f"| `{name}` | `{s.default!r}` | {s.meaning} |" for name, s in listed.items()]
    return "\n".join([f"Settings of {found[2]}:", "", "| name | default | meaning |", "|---|---|---|", *rows, ""])
