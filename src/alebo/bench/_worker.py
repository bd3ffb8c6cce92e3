"""A worker process: reads one task a line, runs it on one thread, answers with its record. Started by `experiment`."""

from __future__ import annotations

import json
import os
import signal
import sys


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides when to stop
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a problem or a library prints must not mix with the answers

    import torch

    from .labels import Label
    from .one_run import replication
    from .problems import problem

    torch.set_num_threads(1)
    for line in sys.stdin:
        task = json.loads(line)

        def progress(k: int) -> None:
            answers.write(json.dumps({"evaluations": k}) + "\n")
            answers.flush()

        answer: dict[str, object]
        try:
            record = replication(
                problem(task["problem"]),
                Label.parse(task["method"]),
                task["seed"],
                budget=task["budget"],
                progress=progress,
            )
            answer = {"record": record}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
