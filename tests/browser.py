"""One headless Chromium for many checks, spoken to over its debugging pipe: pages, their consoles, scripts in them, pictures."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections import deque
from pathlib import Path
from types import TracebackType
from typing import Any

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--hide-scrollbars", "--disable-extensions",
    "--remote-debugging-pipe",
)  # fmt: skip
PATIENCE = 120.0  # seconds for an answer, on a busy machine


def chromium() -> str | None:
    """Where Chromium is, or None."""
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Browser:
    """A browser as a context manager; `open` gives a page."""

    def __enter__(self) -> Browser:
        program = chromium()
        assert program is not None
        self._profile = tempfile.TemporaryDirectory(prefix="browser-", ignore_cleanup_errors=True)
        to_read, self._write = os.pipe()
        self._read, to_write = os.pipe()
        fds = {to_read, to_write}

        def renumber() -> None:  # the pipe is file 3 in, file 4 out
            kept = os.dup(to_read), os.dup(to_write)
            os.dup2(kept[0], 3)
            os.dup2(kept[1], 4)

        self._process = subprocess.Popen(
            [program, *FLAGS, f"--user-data-dir={self._profile.name}", "about:blank"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=renumber,
            pass_fds=(3, 4, *fds),
        )
        for fd in fds:
            os.close(fd)
        self._buffer = b""
        self._number = 0
        self._events: deque[dict[str, Any]] = deque()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._write)
        os.close(self._read)
        self._profile.cleanup()

    def call(self, method: str, session: str | None = None, **params: Any) -> dict[str, Any]:
        """One command of the debugging protocol, and its answer."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if session is not None:
            message["sessionId"] = session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, (method, answer["error"])
                return dict(answer["result"])
            self._events.append(answer)
        raise TimeoutError(method)

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            piece = os.read(self._read, 1 << 20)
            assert piece, "the browser ended"
            self._buffer += piece
        message, _, self._buffer = self._buffer.partition(b"\0")
        return dict(json.loads(message))

    def open(self, where: Path | str, *, width: int = 1200, height: int = 900, dark: bool = False) -> Page:
        """Load a file or an address in a fresh page, and wait until the page says that it is ready."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, session, target)
        for domain in ("Runtime", "Page", "Log"):
            self.call(f"{domain}.enable", session)
        self.call(
            "Emulation.setDeviceMetricsOverride",
            session,
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        feature = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", session, features=[feature])
        self.call("Page.navigate", session, url=where.as_uri() if isinstance(where, Path) else where)
        page.wait("document.body && document.body.dataset.ready === 'yes'")
        return page


class Page:
    """A loaded page."""

    def __init__(self, browser: Browser, session: str, target: str) -> None:
        self._browser, self._session, self._target = browser, session, target

    def run(self, script: str) -> Any:
        """The value of a JavaScript expression in the page."""
        done = self._browser.call(
            "Runtime.evaluate", self._session, expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")

    def wait(self, condition: str, seconds: float = PATIENCE) -> None:
        """Until a JavaScript expression is true."""
        end = time.monotonic() + seconds
        while not self.run(f"Boolean({condition})"):
            assert time.monotonic() < end, f"not true after {seconds} s: {condition}; console: {self.console()}"
            time.sleep(0.05)

    def console(self) -> list[str]:
        """Everything that the page complained about: errors, warnings, exceptions, failed requests."""
        self.run("0")  # all events up to here have come
        out = []
        for event in self._browser._events:
            if event.get("sessionId") != self._session:
                continue
            params = event.get("params", {})
            if event["method"] == "Runtime.exceptionThrown":
                out.append(json.dumps(params["exceptionDetails"])[:500])
            elif event["method"] == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
                out.append(json.dumps(params["args"])[:500])
            elif event["method"] == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
                out.append(params["entry"]["text"][:500])
        return out

    def picture(self, path: Path, *, whole: bool = True, clip: str | None = None) -> None:
        """A PNG of the page: all of it, what is visible, or the element that a CSS selector names."""
        params: dict[str, Any] = {"format": "png", "captureBeyondViewport": whole or clip is not None}
        if clip is not None:
            box = self.run(
                f"(() => {{ const r = document.querySelector({json.dumps(clip)}).getBoundingClientRect(); "
                "return {x: r.x + scrollX, y: r.y + scrollY, width: r.width, height: r.height, scale: 1}; })()"
            )
            params["clip"] = box
        elif whole:
            size = self._browser.call("Page.getLayoutMetrics", self._session)["cssContentSize"]
            params["clip"] = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        taken = self._browser.call("Page.captureScreenshot", self._session, **params)
        path.write_bytes(base64.b64decode(taken["data"]))

    def close(self) -> None:
        """Close the page; the browser stays."""
        self._browser.call("Target.closeTarget", targetId=self._target)
