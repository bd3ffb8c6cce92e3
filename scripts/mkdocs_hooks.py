"""For the documentation site: links into the repository outside of docs/ become plain text, since the site has no such pages."""

import re


def on_page_markdown(markdown, **_):
    return re.sub(r"\[([^\]]+)\]\(\.\./[^)]*\)", r"\1", markdown)
