"""The report while the run goes on: the same page from a small server on this machine, which refreshes itself.

It listens on 127.0.0.1 only, answers only under a path with a secret token, and ends with the command. Whoever reads the
page cannot change the study: it is read, never written.
"""

from __future__ import annotations

import hmac
import json
import logging
import secrets
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any
from urllib.parse import parse_qs, urlsplit

from .._errors import AleboError
from ..diagnostics import Diagnosis, diagnose
from ..history import Span
from ..plots._style import Run
from .content import content, finite
from .page import blocks, render, shown, stamp

log = logging.getLogger(__name__)
HOST = "127.0.0.1"
GROWTH = 1.15  # the models are fitted again when there are so many times as many completed trials
HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
    "Content-Security-Policy": "default-src 'self' 'unsafe-inline' data: blob:",
}


class LivePage:
    """A page that follows a run. Use it as a context manager; `address` is what a browser opens."""

    def __init__(
        self,
        read: Callable[[], Run],
        *,
        name: str = "study",
        where: str = "study.toml",
        every: float = 3.0,
        port: int = 0,
        spans: Callable[[], Sequence[Span]] = tuple,
        models: bool = True,
    ) -> None:
        """Prepare the server; it starts to answer when the context is entered.

        Args:
            read: Gives the run as it is now; called every few seconds.
            name: The title of the page.
            where: How the command line names the study.
            every: Seconds between two looks at the run.
            port: Of the server; 0: any free one.
            spans: Gives the times of the trials.
            models: Whether models are fitted and judged as the run goes on.
        """
        self._read, self._spans, self._name, self._where, self._every = read, spans, name, where, every
        self._models = models
        self._token = secrets.token_urlsafe(18)
        self._lock = threading.Lock()
        self._version = 0
        self._data: dict[str, Any] = {}
        self._said: Diagnosis | None = None
        self._last: tuple[int, ...] | None = None
        self._stop = threading.Event()
        self._server = _server(self, port)
        self.address = f"http://{HOST}:{self._server.server_port}/{self._token}/"

    def __enter__(self) -> LivePage:
        self.refresh()
        work = [self._server.serve_forever, self._follow, *([self._judge] if self._models else [])]
        for each in work:
            threading.Thread(target=each, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._stop.set()
        self._server.shutdown()
        self._server.server_close()

    def refresh(self, *, force: bool = False) -> bool:
        """Read the run and publish a new page if it has changed; whether it has."""
        run = self._read()
        history = run.history
        corrections = sum(len(t.earlier) for t in history)
        now = (len(history), len(history.complete), len(history.failed), corrections)
        if now == self._last and not force:
            return False
        with self._lock:
            said = self._said
        data = content(run, diagnosis=said, name=self._name, where=self._where, spans=self._spans())
        with self._lock:
            self._version, self._data, self._last = self._version + 1, data, now
        return True

    def judge(self) -> bool:
        """Fit and judge the models if enough trials have come since the last time; whether it was done."""
        run = self._read()
        n = len(run.history.complete)
        with self._lock:
            seen = 0 if self._said is None else self._said.n
        if n < 1 or n < max(seen + 1, int(GROWTH * seen)):
            return False
        said = diagnose(run.history, run.space, run.goals, method=run.method, seed=run.seed)
        with self._lock:
            self._said = said
        return self.refresh(force=True)

    @property
    def diagnosis(self) -> Diagnosis | None:
        """The last diagnosis, of the run as it was then."""
        with self._lock:
            return self._said

    def page(self) -> str:
        """The page as it is now."""
        with self._lock:
            version, data = self._version, self._data
        return render(data, live={"version": version, "every": self._every})

    def update(self, since: int) -> bytes | None:
        """What a page of that version needs to be up to date; None where it is."""
        with self._lock:
            version, data = self._version, self._data
        if since == version:
            return None
        fresh = {"version": version, "blocks": blocks(data, stamp()), "data": {**shown(data), "live": None}}
        return json.dumps(finite(fresh), allow_nan=False).encode()

    def allowed(self, path: str, host: str) -> str | None:
        """What is asked for, without the token; None where the token or the host is wrong."""
        if host.rsplit(":", 1)[0] not in (HOST, "localhost"):  # a page elsewhere whose name leads here
            return None
        _, token, rest = ([*path.split("/", 2), "", ""])[:3]
        return rest if hmac.compare_digest(token.encode(), self._token.encode()) else None

    def _follow(self) -> None:
        while not self._stop.wait(self._every):
            self._try(self.refresh)

    def _judge(self) -> None:
        while not self._stop.is_set():
            if not self._try(self.judge):
                self._stop.wait(self._every)

    def _try(self, step: Callable[[], bool]) -> bool:
        """Go on when a look fails: the study may be locked for a moment, or a model cannot be fitted."""
        try:
            return step()
        except (AleboError, OSError, ArithmeticError, RuntimeError, ValueError) as error:
            log.warning("The live page could not be refreshed: %s", error)
            return False


def _server(page: LivePage, port: int) -> ThreadingHTTPServer:
    class Handler(BaseHTTPRequestHandler):
        server_version, sys_version = "alebo", ""

        def do_GET(self) -> None:
            url = urlsplit(self.path)
            asked = page.allowed(url.path, self.headers.get("Host", ""))
            if asked == "":
                self._answer(200, "text/html; charset=utf-8", page.page().encode())
            elif asked == "data":
                since = parse_qs(url.query).get("since", ["0"])[0]
                fresh = page.update(int(since) if since.isdigit() else 0)
                self._answer(204 if fresh is None else 200, "application/json", fresh or b"")
            elif asked == "favicon.ico":
                self._answer(204, "image/x-icon", b"")
            else:
                self._answer(404, "text/plain", b"Not found: use the address that the command printed.\n")

        def _answer(self, status: int, kind: str, body: bytes) -> None:
            with suppress(BrokenPipeError, ConnectionResetError):
                self.send_response(status)
                for key, value in {"Content-Type": kind, "Content-Length": str(len(body)), **HEADERS}.items():
                    self.send_header(key, value)
                self.end_headers()
                self.wfile.write(body)

        def log_message(self, *args: Any) -> None:
            """The address holds the token: nothing is logged."""

    server = ThreadingHTTPServer((HOST, port), Handler)
    server.daemon_threads = True
    return server
