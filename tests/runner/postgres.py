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
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PASSWORD = "s3cr3t-Wort"  # of the throw-away server; tests look for it where it must not appear


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


@contextmanager
def server() -> Iterator[str]:
    """The URL of a new, empty server that is gone afterwards."""
    folder = programs()
    assert folder is not None
    prefix, user = _unprivileged()
    home = Path(tempfile.mkdtemp(prefix="alebo-pg-"))
    try:
        (home / "password").write_text(PASSWORD)
        if prefix:
            shutil.chown(home, user)
            shutil.chown(home / "password", user)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        data = home / "data"

        def call(*command: str) -> None:
            done = subprocess.run(
                [*prefix, *command], capture_output=True, text=True, cwd=home, env={**os.environ, "LC_ALL": "C"}
            )
            if done.returncode:
                logged = (home / "log").read_text() if (home / "log").exists() else ""
                raise RuntimeError(f"{command[0]} failed: {done.stdout}{done.stderr}{logged}")

        call(
            *(str(folder / "initdb"), "-D", str(data), "-U", "alebo", "--auth=scram-sha-256"),
            *(f"--pwfile={home / 'password'}", "--no-sync"),
        )
        options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={home} -c max_connections=60"
        call(str(folder / "pg_ctl"), "-D", str(data), "-l", str(home / "log"), "-w", "-o", options, "start")
        try:
            yield f"postgresql://alebo:{PASSWORD}@127.0.0.1:{port}/postgres"
        finally:
            call(str(folder / "pg_ctl"), "-D", str(data), "-m", "immediate", "-w", "stop")
    finally:
        shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":  # python -m tests.runner.postgres COMMAND ... {url} ...: the command, with a server for it
    import signal
    import sys

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the server goes, too
    with server() as address:
        sys.exit(subprocess.run([part.replace("{url}", address) for part in sys.argv[1:]]).returncode)
