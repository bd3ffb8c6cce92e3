"""Runs one command and ends everything that it started. A program of its own: it imports nothing of alebo.

    python -I -S _supervise.py CALLER STATUS_FD FOLDER MEMORY COMMAND ...
    python -I -S _supervise.py watch WORKER NAME


The command and all its descendants stay children of this process (a "subreaper" on Linux), whatever sessions and
process groups they make. They are ended when the command ends, when standard input is closed or gets a byte (the
caller wants it, or is dead, however it died), or when this process is asked to end. STATUS_FD gets one line: `exit N`
or `signal N`. Where there is no subreaper, the command's process group is ended. FOLDER is removed if the caller is dead.

CALLER and WORKER are process numbers: whoever starts us may be dead before we can ask for its number.

`watch` waits for the death of its parent, a worker process, and then ends that worker's process group and every process
whose environment has ALEBO_WORKER=NAME.
"""

import contextlib
import os
import select
import signal
import sys
import time

GRACE = 0.5  # seconds between a polite request to end and the end


def main() -> int:
    if sys.argv[1] == "watch":
        return watch(int(sys.argv[2]), sys.argv[3])
    parent, status, folder, memory = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
    command = sys.argv[5:]
    asked = [False]
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: asked.__setitem__(0, True))
    reaper = _prctl(36, 1)  # PR_SET_CHILD_SUBREAPER
    os.set_inheritable(status, False)
    child = os.fork()
    if child == 0:
        _become(command, memory)
    code = None
    while code is None and not asked[0] and os.getppid() == parent:
        code = _reap(child)
        if code is None:
            with contextlib.suppress(InterruptedError):
                asked[0] = asked[0] or bool(select.select([0], [], [], _pause())[0])
    code = _end_all(child, code, reaper)
    if os.getppid() != parent:
        import shutil

        shutil.rmtree(folder, ignore_errors=True)
    text = "lost" if code is None else f"signal {-code}" if code < 0 else f"exit {code}"
    with contextlib.suppress(OSError):
        os.write(status, text.encode())
    return 0


_looks = 0


def _pause() -> float:
    """Short looks at first, for commands that take milliseconds."""
    global _looks
    _looks += 1
    return min(0.1, 0.002 * 1.2**_looks)


def _prctl(option: int, value: int) -> bool:
    if sys.platform != "linux":
        return False
    try:
        import ctypes

        return bool(ctypes.CDLL(None).prctl(option, value, 0, 0, 0) == 0)
    except Exception:
        return False


def _become(command: "list[str]", memory: int) -> None:
    """In the child: take the limits, and become the command."""
    try:
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        _prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: should this supervisor be killed, the command goes with it
        if memory:
            import resource

            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        os.execvp(command[0], command)
    except BaseException as error:
        os.write(2, f"cannot start {command[0]}: {error}\n".encode(errors="replace"))
    os._exit(127)


def _reap(child: int) -> "int | None":
    """Collect ended children; the command's exit code (negative: a signal) once it has ended."""
    code = None
    while True:
        try:
            pid, how = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return code
        if pid == 0:
            return code
        if pid == child:
            code = os.waitstatus_to_exitcode(how)


def _descendants() -> "list[int]":
    """All processes below this one, by /proc."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    rest = file.read().rsplit(b")", 1)[1].split()
            except (OSError, IndexError):
                continue
            if rest[0] != b"Z":
                children.setdefault(int(rest[1]), []).append(int(name))
    found, queue = [], [os.getpid()]
    while queue:
        below = children.get(queue.pop(), [])
        found += below
        queue += below
    return found


def _signal(pids: "list[int]", number: int) -> None:
    for pid in pids:
        with contextlib.suppress(OSError):
            os.kill(pid, number)


def _end_all(child: int, code: "int | None", reaper: bool) -> "int | None":
    """Ask everything to end, and end what does not; the command's exit code."""
    start = time.monotonic()
    asked: set[int] = set()
    while True:
        ended = _reap(child)
        code = ended if ended is not None else code
        late = time.monotonic() - start > GRACE
        number = signal.SIGKILL if late else signal.SIGTERM
        if reaper:
            left = _descendants()
            if not left:
                return code
            _signal([p for p in left if late or p not in asked], number)
            asked.update(left)
        else:
            try:
                os.killpg(child, number)
            except OSError:
                return code
        time.sleep(0.01 if late else 0.02)
        if time.monotonic() - start > 30.0:  # processes that not even SIGKILL ends, in a system call that hangs
            return code


def watch(worker: int, name: str) -> int:
    """Wait until the worker is dead, and end what it left behind."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while os.getppid() == worker:
        time.sleep(0.5)
    with contextlib.suppress(OSError):
        os.killpg(worker, signal.SIGKILL)
    mark, until = f"ALEBO_WORKER={name}".encode(), time.monotonic() + 3 * GRACE
    while True:  # supervisors of commands end what is theirs first
        left = _marked(mark)
        if not left:
            return 0
        if time.monotonic() > until:
            _signal(left, signal.SIGKILL)
        if time.monotonic() > until + 10.0:
            return 0
        time.sleep(0.05)


def _marked(mark: bytes) -> "list[int]":
    """Other processes with this in their environment."""
    found = []
    for name in os.listdir("/proc") if os.path.isdir("/proc") else []:
        if name.isdigit() and int(name) != os.getpid():
            try:
                with open(f"/proc/{name}/environ", "rb") as file:
                    if mark in file.read().split(b"\0"):
                        found.append(int(name))
            except OSError:
                continue
    return found


if __name__ == "__main__":
    sys.exit(main())
