"""A real PostgreSQL server for tests: initdb and pg_ctl of the system's package, unprivileged, on a free loopback port."""

from __future__ import annotations

import getpass
import glob
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PASSWORD = "s3cr3t/W0rt"  # of the throw-away server; tests look for it where it must not appear


def programs() -> Path | None:
    """The folder with initdb and pg_ctl, or None."""
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"))
    on_path = shutil.which("initdb")
    return Path(found[-1]).parent if found else Path(on_path).parent if on_path else None


def _unprivileged() -> tuple[list[str], str]:
    """How to run a command as somebody other than root (PostgreSQL refuses root), and who that is."""
    if os.geteuid() != 0:
        return [], getpass.getuser()
    for name in ("postgres", "nobody"):
        try:
            pwd.getpwnam(name)
        except KeyError:
            continue
        return ["runuser", "-u", name, "--"], name
    raise RuntimeError("no unprivileged user to run PostgreSQL as")


class Server:
    """A server that can be stopped, started, restarted, and whose connections can be cut."""

    def __init__(self, home: Path, folder: Path, prefix: list[str], port: int) -> None:
        self.home, self.folder, self.prefix, self.port = home, folder, prefix, port
        self.url = f"postgresql://alebo:{PASSWORD}@127.0.0.1:{port}/postgres"

    def call(self, *command: str) -> None:
        done = subprocess.run(
            [*self.prefix, *command], capture_output=True, text=True, cwd=self.home, env={**os.environ, "LC_ALL": "C"}
        )
        if done.returncode:
            log = self.home / "log"
            raise RuntimeError(
                f"{command[0]} failed: {done.stdout}{done.stderr}{log.read_text() if log.exists() else ''}"
            )

    def control(self, *words: str) -> None:
        self.call(str(self.folder / "pg_ctl"), "-D", str(self.home / "data"), "-w", *words)

    def start(self) -> None:
        options = (
            f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={self.home} "
            "-c max_connections=200 -c fsync=off"
        )
        self.control("-l", str(self.home / "log"), "-o", options, "start")

    def stop(self, mode: str = "fast") -> None:
        self.control("-m", mode, "stop")

    def restart(self, mode: str = "fast", away: float = 0.5) -> None:
        self.stop(mode)
        time.sleep(away)
        self.start()

    @contextmanager
    def away(self, seconds: float = 1.0) -> Iterator[None]:
        """Stopped at the beginning, and back after so many seconds."""
        self.stop()
        timer = threading.Timer(seconds, self.start)
        timer.start()
        try:
            yield
        finally:
            timer.join()

    def cut(self, more: str = "") -> int:
        """End every connection but our own; how many there were."""
        import sqlalchemy

        engine = sqlalchemy.create_engine(self.url.replace("://", "+psycopg2://", 1), isolation_level="AUTOCOMMIT")
        question = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE pid <> pg_backend_pid() " + more
        with engine.connect() as connection:
            count = connection.execute(sqlalchemy.text(question)).scalar()
        engine.dispose()
        return int(count or 0)


@contextmanager
def running(parent: Path | None = None) -> Iterator[Server]:
    """A new, empty server that is gone afterwards."""
    folder = programs()
    assert folder is not None
    prefix, user = _unprivileged()
    home = Path(tempfile.mkdtemp(prefix="alebo-pg-", dir=parent))
    try:
        (home / "password").write_text(PASSWORD)
        if prefix:
            shutil.chown(home, user)
            shutil.chown(home / "password", user)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        made = Server(home, folder, prefix, port)
        made.call(
            *(str(folder / "initdb"), "-D", str(home / "data"), "-U", "alebo", "--auth=scram-sha-256"),
            *(f"--pwfile={home / 'password'}", "--no-sync"),
        )
        made.start()
        try:
            yield made
        finally:
            with suppress(RuntimeError):
                made.stop("immediate")
    finally:
        shutil.rmtree(home, ignore_errors=True)


@contextmanager
def server() -> Iterator[str]:
    """The URL of a new, empty server that is gone afterwards."""
    with running() as made:
        yield made.url


if __name__ == "__main__":  # python -m tests.runner.postgres COMMAND ... {url} ...: the command, with a server for it
    import signal
    import sys

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the server goes, too
    with server() as address:
        sys.exit(subprocess.run([part.replace("{url}", address) for part in sys.argv[1:]]).returncode)
