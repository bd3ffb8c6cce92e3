"""Runs three weeks in a laboratory with the `alebo` command, and writes them as docs/by_hand.md.

    python -m tests.cli.by_hand_page            writes the page

tests/cli/test_by_hand_page.py runs the same story and compares it with the page.
"""

from __future__ import annotations

import csv
import io
import os
import shlex
import sys
import tempfile
from contextlib import redirect_stderr, redirect_stdout, suppress
from pathlib import Path

from alebo.cli import main

PAGE = Path(__file__).parents[2] / "docs" / "by_hand.md"


class Story:
    """Text, commands with what they print, and files, in a folder of their own."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, text: str) -> None:
        """A paragraph or a heading."""
        self.lines += [text, ""]

    def run(self, *commands: str) -> None:
        """Commands with their output, as one block."""
        self.lines.append("```")
        for command in commands:
            self.lines.append(f"$ {command}")
            text = io.StringIO()
            with redirect_stdout(text), redirect_stderr(text), suppress(SystemExit):
                main(shlex.split(command.replace("\\\n", ""))[1:])
            self.lines += text.getvalue().rstrip().splitlines()
        self.lines += ["```", ""]

    def show(self, path: str) -> None:
        """A file."""
        self.lines += ["```", *Path(path).read_text().rstrip().splitlines(), "```", ""]

    def fill(self, path: str, changes: dict[int, dict[str, str]]) -> None:
        """What a person writes into a sheet, by trial."""
        rows = list(csv.DictReader(io.StringIO(Path(path).read_text())))
        for row in rows:
            row.update(changes.get(int(row["trial"]), {}))
        text = io.StringIO()
        writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        Path(path).write_text(text.getvalue())


def story() -> str:
    """The page, with everything in it really run in the present folder."""
    s = Story()
    s.say("# Three weeks in a laboratory")
    s.say(
        "A person measures; no program is called. Everything below is run by `tests/cli/by_hand_page.py` as it stands here, and a test compares it\n"
        "with this page. Four settings keep the sheets narrow; with forty the commands are the same."
    )
    s.say("## Monday: old data first, then a sheet")
    s.say(
        "The oven can be set in steps of 5 degrees, the clock is read to two digits. `step` and `digits` say so, and nothing else is proposed."
    )
    s.run(
        "alebo new assay.toml --by-hand --maximize yield --budget 30 --param temperature=20:80:step=5 \\\n"
        "    --param hours=0.5:24:log:digits=2 --param amount=0:1 --param solvent=water,ethanol"
    )
    s.say("There are measurements of last year, in a spreadsheet with its own order of columns:")
    Path("old.csv").write_text(
        "solvent,temperature,hours,amount,yield\nwater,40,4,0.2,0.31\nethanol,60,12,0.5,0.44\nwater,37.5,6,0.5,0.35\n"
    )
    s.show("old.csv")
    s.say("They are loaded before anything is asked. Rows without a trial number are points that were measured before.")
    s.run("alebo tell assay.toml --csv old.csv")
    s.say("The recipe in use today shall be measured first; three proposals follow it.")
    s.run(
        "alebo enqueue assay.toml temperature=50 hours=8 amount=0.4 solvent=ethanol",
        "alebo ask assay.toml --count 4 --output sheet.csv",
    )
    s.show("sheet.csv")
    s.say(
        "Numbers are short: as many digits as the step or the range deserves. The letters under `check` tie a row to its trial, so that a sheet of another\n"
        "study is noticed."
    )
    s.say("## Two weeks of measuring")
    s.say(
        "Trial 3 came out at 0.52. For trial 4 the balance showed 0.41, not what was proposed, so the cell is corrected; yields are measured twice, and their error\n"
        "is written behind them. Trial 5 was spilled. Trial 6 is not measured yet."
    )
    s.fill("sheet.csv", {3: {"yield": "0.52"}, 4: {"yield": "6.1+-0.02", "amount": "0.41"}, 5: {"yield": "failed"}})
    s.show("sheet.csv")
    s.run("alebo tell assay.toml --csv sheet.csv")
    s.say("The setting that was really run is stored, not the proposed one. But 6.1 was a typing mistake: it was 0.61.")
    s.run("alebo tell assay.toml 4 yield=0.61+-0.02 --replace --reason 'typing mistake'")
    s.say(
        "Both are kept in the study; the model sees the valid one only. (Correct the sheet, too, so that it can be read again.) The next points are added to the same sheet, below what is there:"
    )
    s.run("alebo ask assay.toml --count 2 --output sheet.csv")
    s.say("## The third week")
    s.fill(
        "sheet.csv", {4: {"yield": "0.61+-0.02"}, 6: {"yield": "0.47"}, 7: {"yield": "0,66"}, 8: {"yield": "0.58 g"}}
    )
    s.say(
        "The sheet comes back with a comma and a unit in it. Nothing of it is stored until it is clear what is meant:"
    )
    s.run("alebo tell assay.toml --csv sheet.csv")
    s.fill("sheet.csv", {7: {"yield": "0.66"}})
    s.say("With 0.66 in the cell:")
    s.run("alebo tell assay.toml --csv sheet.csv")
    s.fill("sheet.csv", {8: {"yield": "0.58"}})
    s.say("And without the unit:")
    s.run("alebo tell assay.toml --csv sheet.csv")
    s.say(
        "Rows that were read before, with the same values, do no harm: the whole sheet can be read again and again. (Where a spreadsheet writes `;` between\n"
        "columns, a decimal comma is read as one; `alebo ask --semicolon` writes such a sheet.)"
    )
    s.say("Trial 6 turned out to have been made with the wrong bottle. It is withdrawn:")
    s.run("alebo forget assay.toml 6 --reason 'wrong bottle'", "alebo status assay.toml", "alebo best assay.toml")
    s.say("Everything, with exact values, for a notebook or another program:")
    s.run("alebo export assay.toml --output trials.csv")
    s.say(
        '`alebo export --format json` and `--format parquet` write the same. In Python, `alebo.Study.open("assay.journal", name="assay")` opens the study;\n'
        "`study.amend`, `study.forget`, `study.enqueue` and `study.tell(number, outcomes, params=...)` do what the commands above do."
    )
    return "\n".join(s.lines).rstrip() + "\n"


def in_a_folder() -> str:
    """The story, run in a new folder, with a terminal of fixed width."""
    os.environ["COLUMNS"] = "100"
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            return story().replace(str(Path(folder).resolve()) + os.sep, "")
        finally:
            os.chdir(before)


if __name__ == "__main__":
    PAGE.write_text(in_a_folder(), encoding="utf-8")
    sys.stdout.write(f"Wrote {PAGE}\n")
