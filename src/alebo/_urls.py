"""Database addresses: which text is one, and how one is shown without its password."""

from __future__ import annotations

import re
from urllib.parse import quote, quote_plus, unquote

_SCHEME = re.compile(r"^[a-zA-Z][a-zA-Z0-9+]*://")
_IN_TEXT = re.compile(r"[a-zA-Z][a-zA-Z0-9+]*://\S+")
_PLAIN = re.compile(r"(?P<before>://[^\s:/@]*:)\S*(?P<after>@)")
_SPACED = re.compile(r"(://[^\s:/@]*:).*(@)", re.DOTALL)
_KEY = re.compile(r"(?P<key>\b(?:password|passfile|sslpassword)=)[^&\s]*", re.IGNORECASE)
_SECRET_KEYS = ("password", "sslpassword", "passfile")


def is_url(where: str) -> bool:
    """Whether this names a database and not a file."""
    return bool(_SCHEME.match(where))


def redact(text: str) -> str:
    """The text with the password of every database address in it replaced: what may be shown, written or logged."""
    if "://" not in text and "=" not in text:
        return text
    if is_url(text):
        shown = _redact_url(text) if text.split() == [text] else _SPACED.sub(r"\1***\2", text)
    else:
        shown = _IN_TEXT.sub(lambda m: _redact_url(m[0]), text)
    return _KEY.sub(lambda m: m["key"] + "***", shown)


def _redact_url(url: str) -> str:
    """One address as SQLAlchemy renders it, without its password."""
    try:
        from sqlalchemy.engine import make_url

        parsed = make_url(url)
        hidden = {k: "***" for k in parsed.query if k.lower() in _SECRET_KEYS}
        shown = parsed.update_query_dict(hidden).render_as_string(hide_password=True)
    except Exception:  # not installed, or not an address that it understands
        shown = url
    return _PLAIN.sub(lambda m: m["before"] + "***" + m["after"], shown)


def without_password(url: str, text: str) -> str:
    """The text without this address's password, in case a library has put it there."""
    for secret in sorted(_secrets(url), key=len, reverse=True):
        text = text.replace(secret, "***")
    return redact(text)


def _secrets(url: str) -> set[str]:
    try:
        from sqlalchemy.engine import make_url

        parsed = make_url(url)
    except Exception:
        return set()
    found = [parsed.password, *(parsed.query.get(k) for k in _SECRET_KEYS)]
    texts = {str(p) for p in found if p and isinstance(p, str)}
    return {form for p in texts for form in (p, unquote(p), quote(p, safe=""), quote_plus(p)) if form}
