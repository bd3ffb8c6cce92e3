"""Earlier studies as sources: every form they come in, what is matched, and what is refused, each with a message."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pytest

import alebo
from alebo import AtMost, Categorical, Fixed, Float, InputError, Int, Minimize, Optimizer, Source, Space, StudyError
from alebo.runner._origins import check_sources, origins

SPACE = Space(
    [Float("gain", 0, 1), Float("rate", 1e-4, 1, log=True), Int("layers", 1, 5), Categorical("kind", ["a", "b"])]
)
GOALS = Minimize("loss")


def value(p: dict) -> float:
    return (p["gain"] - 0.3) ** 2 + 0.1 * abs(np.log10(p["rate"]) + 2) + 0.05 * p["layers"] + 0.2 * (p["kind"] == "b")


def searched(space: Space = SPACE, n: int = 10, seed: int = 0, goals=GOALS, method="sobol") -> Optimizer:
    opt = Optimizer(space, goals, method=method, seed=seed)
    for trial in opt.ask(n):
        opt.tell(trial.number, value({"rate": 0.1, "layers": 2, "kind": "a", **trial.params}))
    return opt


def one(source, space: Space = SPACE, goals=GOALS):
    return Optimizer(space, goals, sources=source).history.sources[0]


# -- forms ------------------------------------------------------------------------------------------------------------


def test_every_form_gives_the_same_points_and_outcomes(tmp_path: Path) -> None:
    old = searched()
    old.save(tmp_path / "march.json")
    frame = old.to_dataframe()
    frame.to_csv(tmp_path / "old.csv", index=False)
    frame.to_csv(tmp_path / "semicolon.csv", index=False, sep=";", decimal=",")
    study = alebo.Study.create(tmp_path / "april.journal", SPACE, GOALS, method=alebo.methods.Sobol(), name="april")
    for t in study.ask(10):
        study.tell(t.number, value(t.params))
    expected = one(old)
    assert expected.X.shape == (10, 5)
    forms = {
        "march": tmp_path / "march.json",
        "source": frame,
        "old": tmp_path / "old.csv",
        "semicolon": str(tmp_path / "semicolon.csv"),
        "april": study,
    }
    for name, data in forms.items():
        task = one([data])
        assert task.name == name
        assert np.allclose(task.X, expected.X, atol=1e-8)
        assert np.allclose(task.means["loss"], expected.means["loss"], atol=1e-8)
        assert task.said == ()
    assert one(tmp_path / "april.journal").digest == one(study).digest
    space = "gain = [0.0, 1.0]\nrate = { low = 1e-4, high = 1.0, log = true }\n"
    space += 'layers = { type = "int", low = 1, high = 5 }\nkind = ["a", "b"]\n'
    text = f'[study]\nname = "april"\n[parameters]\n{space}[goals]\nminimize = "loss"\n[method]\nname = "sobol"\n'
    (tmp_path / "study.toml").write_text(text)
    assert one(tmp_path / "study.toml").digest == one(study).digest


def test_the_points_are_those_of_the_space() -> None:
    old = searched()
    task = one(old)
    assert np.allclose(task.X, [SPACE.encode(t.params) for t in old.history], atol=1e-8)


def test_standard_errors_and_failures_are_read(tmp_path: Path) -> None:
    rows = "gain,loss,loss_sem,state\n0.1,1.0,0.1,complete\n0.2,2.0,,complete\n0.3,,,failed\n0.4,nan,,complete\n0.5,3 ± 0.2,,\n"
    (tmp_path / "old.csv").write_text(rows)
    task = one(tmp_path / "old.csv", Space([Float("gain", 0, 1)]))
    assert task.means["loss"].tolist() == [1.0, 2.0, 3.0]
    assert task.sems["loss"][[0, 2]].tolist() == [0.1, 0.2]
    assert np.isnan(task.sems["loss"][1])
    assert any("2 of 5 evaluations failed" in words for words in task.said)


def test_a_parameter_that_the_source_lacked_had_a_stated_value() -> None:
    old = searched(Space([Float("gain", 0, 1), Float("rate", 1e-4, 1, log=True)]))
    task = one(Source(old, given={"layers": 3, "kind": "b"}))
    assert np.allclose(task.X[:, 2:], SPACE.encode({"gain": 0, "rate": 1, "layers": 3, "kind": "b"})[2:])
    with pytest.raises(InputError, match=r"lacks 'layers', 'kind'.*given=\{'layers'"):
        one(old)
    with pytest.raises(InputError, match="cannot have"):
        one(Source(old, given={"layers": 3, "kind": "c"}))
    with pytest.raises(InputError, match="states another"):
        one(Source(searched(), given={"gain": 0.5}))
    with pytest.raises(InputError, match="Did you mean 'layers'"):
        one(Source(old, given={"layer": 3}))


def test_what_the_study_lacks_is_left_out_with_a_message(caplog) -> None:
    with caplog.at_level(logging.WARNING, "alebo"):
        task = one(searched(), Space([Float("gain", 0, 1), Fixed("kind", "a")]))
    assert task.X.shape == (10, 1)
    assert "'rate', 'layers' are not in the present study" in caplog.text


def test_names_may_differ() -> None:
    opt = Optimizer(Space([Float("old_gain", 0, 1)]), Minimize("error"), method="sobol")
    for t in opt.ask(5):
        opt.tell(t.number, t.params["old_gain"])
    task = one(Source(opt, columns={"gain": "old_gain", "loss": "error"}), Space([Float("gain", 0, 1)]))
    assert np.allclose(0.5 * (task.X[:, 0] + 1), task.means["loss"])


def test_points_beyond_the_bounds_are_kept_unless_they_are_far() -> None:
    old = searched(Space([Float("gain", 0, 10)]), n=40)
    task = one(old, Space([Float("gain", 2, 5)]))
    assert np.abs(task.X).max() > 1.0
    assert any("far outside the present bounds" in words for words in task.said)


def test_a_large_source_is_thinned_and_keeps_its_best(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    gains = rng.random(9000)
    lines = "".join(f"{g!r},{(g - 0.5) ** 2!r}\n" for g in gains.tolist())
    (tmp_path / "old.csv").write_text("gain,loss\n" + lines)
    task = one(tmp_path / "old.csv", Space([Float("gain", 0, 1)]))
    assert len(task) == 300
    assert task.means["loss"].min() == pytest.approx(((gains - 0.5) ** 2).min(), rel=1e-6)
    assert any("300 of 9000 evaluations are learned from" in words for words in task.said)


# -- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("a,b\n1,2\n", "no parameter of the present study"),
        ("gain,error\n0.1,2\n", "no outcome 'loss'"),
        ("gain,loss\n0.1,2\n0.2,2\n0.3,2\n", "same 'loss' in all of its 3"),
        ("gain,loss\n0.1,nan\n0.2,\n", "none of them with finite outcomes"),
        ("gain,loss\n0.1,1\n", "Two are needed"),
        ("gain,loss\n0.1,1\n0.2,broken\n", "line 3, column 'loss' holds numbers"),
        ("", "line of column names"),
        ("gain,loss\n0.1,1\n0,2,2\n", r"old.csv, line 3: '2' stands in a column without a name.*0\.7, not 0,7"),
        ("gain,b,loss\n0,5,0.3,1.2\n", r"old.csv, line 2: '1.2' stands in a column without a name"),
        ("gain,loss,\n0,5,1.2\n", r"old.csv, line 2: '1.2' stands in a column without a name"),
        ("gain,loss,gain\n0.1,1,2\n0.2,2,3\n", r"old.csv, line 1: .*'gain' comes twice. Rename one"),
        ('gain,loss\n0.1,1\n0.2,"2"3\n', r"old.csv, line 3: it is no CSV.*quotes"),
        ("gain,loss\n0.1,1\n0.2,\0\n", r"old.csv, line 3 is not: save the spreadsheet as CSV"),
    ],
)
def test_a_source_that_teaches_nothing_is_refused(tmp_path: Path, rows: str, message: str) -> None:
    (tmp_path / "old.csv").write_text(rows)
    with pytest.raises(InputError, match=message):
        one(tmp_path / "old.csv", Space([Float("gain", 0, 1)]))


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("gain, 'b , loss\n0.1, 0.5, 1\n0.2, 0.5, 2\n", "utf-8"),
        ("sep=;\ngain;'b;loss\n0,1;0,5;1\n0,2;0,5;2\n", "utf-8"),
        ("\nsep=;\r\ngain;'b;loss\r\n0,1;0,5;1\r\n\r\n0,2;0,5;2\r\n", "utf-8-sig"),
        ("gain\t'b\tloss\n0.1\t0.5\t1\n0.2\t0.5\t2\n", "utf-16"),
        ("gain,'b,loss,\n0.1,0.5,1,\n0.2,0.5,2,,\n", "utf-8"),
        (",gain,'b,loss\n0,0.1,0.5,1\n1,0.2,0.5,2\n", "utf-8"),
        ('"gain","\'b","loss"\n"0.1","0.5","1"\n"0.2","0.5","2"\n', "utf-8"),
    ],
    ids=["spaces", "sep=", "sep= after an empty line", "utf-16", "empty surplus", "index of a frame", "quotes"],
)
def test_a_table_is_read_as_spreadsheets_write_it(tmp_path: Path, text: str, encoding: str) -> None:
    (tmp_path / "old.csv").write_bytes(text.encode(encoding))
    task = one(tmp_path / "old.csv", Space([Float("gain", 0, 1), Float("'b", 0, 1)]))
    assert np.allclose(task.X, [[-0.8, 0.0], [-0.6, 0.0]])
    assert task.means["loss"].tolist() == [1.0, 2.0]


def test_a_row_that_ends_early_lacks_its_last_cells(tmp_path: Path) -> None:
    (tmp_path / "old.csv").write_text("gain,kind,loss,state\n0.1,a,1\n0.2,None,2,complete\n0.3,b\n0.4\n")
    space = Space([Float("gain", 0, 1), Categorical("kind", ["a", "b", "None"])])
    task = one(tmp_path / "old.csv", space)
    assert task.means["loss"].tolist() == [1.0, 2.0]
    assert any("3 rows have fewer cells than there are columns (line 2)" in words for words in task.said)
    assert any("2 of 4 evaluations failed, were pending or have no finite outcome" in words for words in task.said)


def test_a_cell_that_is_not_there_is_no_choice(tmp_path: Path) -> None:
    (tmp_path / "old.csv").write_text("gain,loss,kind\n0.1,1,None\n0.2,2\n0.3,3,a\n")
    task = one(tmp_path / "old.csv", Space([Float("gain", 0, 1), Categorical("kind", ["a", "None"])]))
    assert task.means["loss"].tolist() == [1.0, 3.0]
    assert any("1 of 3 evaluations have values that parameters cannot have" in words for words in task.said)


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    head = "gain,loss\n" + "0.1,1\n" * 4000
    (tmp_path / "old.csv").write_bytes(head.encode() + b"0.2,\xff\n")
    with pytest.raises(InputError, match=r"old.csv cannot be read after line \d+.*CSV UTF-8"):
        one(tmp_path / "old.csv", Space([Float("gain", 0, 1)]))


def test_the_messages_name_the_file_and_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "old.csv").write_text("gain,loss\n0.1,1\n0.2,2\n")
    with pytest.raises(InputError, match=r"source 'old' \(.*old.csv\) lacks 'rate'"):
        one(tmp_path / "old.csv")
    with pytest.raises(InputError, match=r"says something of 'c'.*It has 'gain'\. .*`given`, or leave it out there"):
        one(Source(tmp_path / "old.csv", given={"c": 3}), Space([Float("gain", 0, 1)]))
    with pytest.raises(InputError, match=r"says something of 'loss'.*It has 'gain'\."):
        one(Source(tmp_path / "old.csv", given={"loss": 3}), Space([Float("gain", 0, 1)]))
    with pytest.raises(InputError, match=r"says something of 'c'.*It has 'gain', 'loss'\. .*`columns`"):
        one(Source(tmp_path / "old.csv", columns={"c": "d"}), Space([Float("gain", 0, 1)]))


def test_missing_values_of_a_frame_are_empty_cells() -> None:
    pd = pytest.importorskip("pandas")
    cells = {"gain": [0.1, 0.2, None, 0.4], "kind": ["a", "b", "a", None], "loss": [1.0, None, 2.0, 3.0]}
    plain = pd.DataFrame({**cells, "loss_sem": [0.1, 0.1, 0.1, None], "state": ["complete", None, None, None]})
    space = Space([Float("gain", 0, 1), Categorical("kind", ["a", "b", None])])
    tasks = [one(frame, space) for frame in (plain, plain.convert_dtypes())]
    for task in tasks:
        assert task.means["loss"].tolist() == [1.0, 3.0]
        assert task.sems["loss"][0] == 0.1
        assert np.isnan(task.sems["loss"][1])
    assert tasks[0].digest == tasks[1].digest
    with pytest.raises(InputError, match="'gain' comes twice"):
        one(pd.concat([plain, plain[["gain"]]], axis=1), space)


@pytest.mark.parametrize("data", [3, {"a": 1}, "nowhere.csv", [1, 2]])
def test_what_is_no_source_is_refused(data) -> None:
    with pytest.raises(InputError, match=r"A source is"):
        Optimizer(SPACE, GOALS, sources=data)


def test_none_and_an_empty_list_are_no_sources() -> None:
    assert Optimizer(SPACE, GOALS, sources=None).history.sources == ()
    assert Optimizer(SPACE, GOALS, sources=[]).history.sources == ()


def test_settings_of_a_source_are_checked() -> None:
    for wrong in ({"given": 3}, {"columns": {"a": 1}}, {"name": ""}):
        with pytest.raises(InputError):
            Source(searched(), **wrong)


def test_what_it_does_not_combine_with_is_refused() -> None:
    old = searched()
    with pytest.raises(InputError, match=r"does not learn from other studies. Methods that do: adaptive, alebo"):
        Optimizer(SPACE, GOALS, method="bo", sources=old)
    limited = Space(SPACE.parameters, [alebo.LinearConstraint({"gain": 1.0}, 0.5)])
    with pytest.raises(InputError, match="linear constraints"):
        Optimizer(limited, GOALS, sources=old)
    looked = Space([Float("gain", 0, 1), alebo.Fidelity("share", 0.1, 1.0)])
    with pytest.raises(InputError, match="Fidelity"):
        Optimizer(looked, GOALS, sources=Source(old, given={"share": 1.0}))


def test_the_same_source_twice_is_refused() -> None:
    with pytest.raises(InputError, match="given once"):
        Optimizer(SPACE, GOALS, sources=[searched(), searched()])


def test_constraints_without_data_there_are_said() -> None:
    opt = Optimizer(SPACE, [GOALS, AtMost("latency", 3.0)], sources=searched())
    assert any("no 'latency'" in words for words in opt.history.sources[0].said)
    assert set(opt.history.sources[0].kernels) == {"objective 0"}


# -- saved ------------------------------------------------------------------------------------------------------------


def test_a_saved_study_holds_its_sources(tmp_path: Path) -> None:
    old = searched()
    old.save(tmp_path / "old.json")
    opt = Optimizer(SPACE, GOALS, seed=1, sources=[tmp_path / "old.json"])
    for _ in range(5):
        t = opt.ask()[0]
        opt.tell(t.number, value(t.params))
    opt.save(tmp_path / "new.json")
    (tmp_path / "old.json").unlink()
    again = Optimizer.load(tmp_path / "new.json")
    assert again.history.sources[0].to_dict() == opt.history.sources[0].to_dict()
    assert np.array_equal(again.ask()[0].x, opt.ask()[0].x)


@pytest.mark.parametrize("damage", [{"X": [[9.0]]}, {"kernels": {}}, {"means": {"loss": [1.0]}}, {"X": "text"}])
def test_damaged_sources_are_refused(tmp_path: Path, damage: dict) -> None:
    import json

    opt = Optimizer(SPACE, GOALS, sources=searched())
    data = opt.to_dict()
    data["sources"][0] |= damage
    (tmp_path / "new.json").write_text(json.dumps(data))
    with pytest.raises(StudyError, match="source"):
        Optimizer.load(tmp_path / "new.json")


def test_a_stored_study_keeps_its_sources(tmp_path: Path) -> None:
    old = searched()
    frame = old.to_dataframe()
    frame.to_csv(tmp_path / "old.csv", index=False)
    study = alebo.Study.create(
        tmp_path / "new.journal", SPACE, GOALS, seed=1, sources=[tmp_path / "old.csv"], budget=20
    )
    twin = Optimizer(SPACE, GOALS, seed=1, sources=[frame], budget=20)
    (tmp_path / "old.csv").unlink()
    for _ in range(4):
        t, u = study.ask()[0], twin.ask()[0]
        assert np.array_equal(t.x, u.x)
        study.tell(t.number, value(t.params))
        twin.tell(u.number, value(u.params))
        study = alebo.Study.open(tmp_path / "new.journal")
    again = alebo.Study.create(
        tmp_path / "new.journal", SPACE, GOALS, seed=1, sources=[tmp_path / "old.csv"]
    )  # not read
    assert again.history.sources[0].digest == one(old).digest
    with pytest.raises(StudyError, match="begun with 1, and got 2"):
        alebo.Study.create(tmp_path / "new.journal", SPACE, GOALS, seed=1, sources=["old.csv", "b.csv"])
    alebo.Study.create(tmp_path / "plain.journal", SPACE, GOALS)
    with pytest.raises(StudyError, match="begun with none, and got 1"):
        alebo.Study.create(tmp_path / "plain.journal", SPACE, GOALS, sources=[old])


def test_another_source_than_it_was_begun_with_is_refused(tmp_path: Path) -> None:
    for name, seed in (("old", 0), ("other", 1)):
        searched(seed=seed).save(tmp_path / f"{name}.json")
    old, other = Optimizer.load(tmp_path / "old.json"), Optimizer.load(tmp_path / "other.json")
    fewer = Optimizer(Space(SPACE.parameters[:3]), GOALS, method="sobol")
    for trial in fewer.ask(5):
        fewer.tell(trial.number, value({"kind": "a", **trial.params}))
    fewer.save(tmp_path / "fewer.json")

    def begun(name: str, sources) -> alebo.Study:
        return alebo.Study.create(tmp_path / f"{name}.journal", SPACE, GOALS, sources=sources)

    def refused(name: str, sources, message: str) -> None:
        with pytest.raises(StudyError, match=f"keeps its sources; .*begun with {message}.*Leave the sources out"):
            begun(name, sources)

    kept = begun("file", [tmp_path / "old.json"]).history.sources[0]
    refused("file", [tmp_path / "other.json"], "old.json, and got other.json")
    refused(
        "file", [Source(tmp_path / "old.json", columns={"loss": "error"})], 'old.json, and got old.json with {"columns"'
    )
    refused("file", [old], "old.json, and got data ")
    assert begun("file", ()).history.sources[0].digest == kept.digest
    begun("given", Source(tmp_path / "fewer.json", given={"kind": "a"}))
    begun("given", Source(tmp_path / "fewer.json", given={"kind": "a"}))
    refused(
        "given",
        Source(tmp_path / "fewer.json", given={"kind": "b"}),
        'fewer.json with .*"a".*got fewer.json with .*"b"',
    )
    begun("memory", [old, other])
    begun("memory", [other, old])  # in any order
    refused("memory", [old, searched(seed=2)], "data [0-9a-f]+, data [0-9a-f]+, and got data ")
    begun("study", [begun_with_trials(tmp_path / "march.journal", "march")])
    begun("study", [alebo.Study.open(tmp_path / "march.journal", name="march")])
    refused("study", [begun_with_trials(tmp_path / "april.journal", "april")], "study march, and got study april")


def begun_with_trials(path: Path, name: str) -> alebo.Study:
    study = alebo.Study.create(path, SPACE, GOALS, method=alebo.methods.Sobol(), name=name)
    for t in study.ask(5):
        study.tell(t.number, value(t.params))
    return study


def test_a_study_moved_with_its_sources_goes_on(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    searched().save(tmp_path / "runs" / "old.json")
    alebo.Study.create(tmp_path / "runs" / "new.journal", SPACE, GOALS, sources=[tmp_path / "runs" / "old.json"])
    (tmp_path / "runs").rename(tmp_path / "elsewhere")
    moved = alebo.Study.create(
        tmp_path / "elsewhere" / "new.journal", SPACE, GOALS, sources=[tmp_path / "elsewhere" / "old.json"]
    )
    assert len(moved.history.sources) == 1


def test_a_source_is_known_without_its_place_where_a_database_is_shared() -> None:
    opt = Optimizer(SPACE, GOALS)
    for data, what in (
        ("/there/old.csv", "old.csv"),
        ("march/study.toml", "march/study.toml"),
        ("postgresql://me:secret@host/lab?password=secret#march", "lab#march"),
        (
            Source("old.csv", name="2019", given={"kind": np.float64(2)}),
            'old.csv with {"given": {"kind": 2.0}, "name": "2019"}',
        ),
    ):
        assert origins(data, opt, "postgresql://host/database") == [what]


def test_a_study_of_an_earlier_version_compares_their_number_only() -> None:
    stored = {"sources": [{}]}
    check_sources("here", stored, "a.csv", Optimizer(SPACE, GOALS))
    with pytest.raises(StudyError, match=r"begun with a\.csv, and got b\.csv"):
        check_sources("here", {**stored, "origins": ["a.csv"]}, "b.csv", Optimizer(SPACE, GOALS))


def test_a_study_does_not_learn_from_itself(tmp_path: Path) -> None:
    path = tmp_path / "march.journal"
    study = alebo.Study.create(path, SPACE, GOALS, method=alebo.methods.Sobol(), name="march")
    for t in study.ask(5):
        study.tell(t.number, value(t.params))
    alebo.Study.create(path, SPACE, GOALS, name="april", sources=[study])  # another study in the same file
    with pytest.raises(InputError, match="the study itself"):
        Optimizer(SPACE, GOALS, sources=()) and alebo.sources.learned_from(
            [study], SPACE, alebo.Goals(GOALS), alebo.methods.Adaptive(), place=(str(path), "march")
        )
