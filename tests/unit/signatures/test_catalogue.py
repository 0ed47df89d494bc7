"""The bundled catalogue: proven, compiled, documented; and where further entries come from."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path
from typing import Any

import pytest

from crashlab.errors import UsageError
from crashlab.signatures import catalogue, document, proof, proofrun, schema
from crashlab.signatures.errors import BadEntry
from crashlab.signatures.match import match_observed

ROOT = Path(__file__).resolve().parents[3]
TABLES = catalogue.read_folder(catalogue.KNOWN)
ENTRY = """
id = "{id}"
title = "mine"
kind = "cause"
status = "open"
confidence = "low"
[[match]]
kernel = ["my_kernel"]
exception = [14]
[[hypothesis]]
cause = "something of mine"
[[proof.match]]
says = "it"
facts = {{ kernel = "my_kernel", exception = 14 }}
[[proof.near_miss]]
says = "not it"
facts = {{ kernel = "my_kernel", exception = 5 }}
"""


@pytest.mark.parametrize(("path", "table"), TABLES, ids=[str(table["id"]) for _, table in TABLES])
def test_every_proof_holds(path: str, table: dict[str, Any]) -> None:
    entry = schema.entry_from(table)
    assert Path(path).stem == entry.id.lower().replace("_", "-")
    assert [outcome for outcome in proof.check(entry, table) if outcome.problem] == []


@pytest.mark.parametrize("table", [table for _, table in TABLES], ids=lambda table: str(table["id"]))
def test_a_proven_crash_is_told_apart_from_all_other_entries(table: dict[str, Any]) -> None:
    for fixture in proof.fixtures_of(table):
        if fixture.hit:
            found = match_observed(fixture.seen, catalogue.cards())
            assert found[0].id == table["id"], fixture.says


def test_the_catalogue_has_not_shrunk() -> None:
    ids = {entry.id for entry in catalogue.bundled()}
    assert len(ids) == len(TABLES) >= 87
    kinds = {entry.kind for entry in catalogue.bundled()}
    assert kinds == {"cause", "symptom", "classification"}


def test_the_compiled_catalogue_equals_the_files() -> None:
    from_files = {
        entry.id: entry._replace(source="bundled") for entry in catalogue.load_folder(catalogue.KNOWN)
    }
    assert {entry.id: entry for entry in catalogue.bundled()} == from_files


def test_the_page_names_every_entry_weight_and_reference() -> None:
    page = document.document(catalogue.bundled())
    for entry in catalogue.bundled():
        assert f"### {entry.id}\n" in page
        assert entry.title in page
    assert "https://github.com/vllm-project/vllm/issues/35566" in page
    assert "| `exception` | 3 |" in page


def test_a_folder_adds_entries_and_bundled_ids_are_taken(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(ENTRY.format(id="MINE-ONE"))
    (tmp_path / "b.toml").write_text(ENTRY.format(id="NAN-TO-BANG"))
    (tmp_path / "notes.txt").write_text("not an entry")
    skipped: list[catalogue.Skipped] = []
    entries = {entry.id: entry for entry in catalogue.load([str(tmp_path)], skipped=skipped)}
    assert entries["MINE-ONE"].source == str(tmp_path)
    assert entries["NAN-TO-BANG"].source == "bundled"
    assert len(entries) == len(TABLES) + 1
    assert [(item.path, "NAN-TO-BANG is taken" in item.why) for item in skipped] == [
        (str(tmp_path / "b.toml"), True)
    ]
    with pytest.raises(BadEntry, match="NAN-TO-BANG is taken by an entry that ships"):
        catalogue.load([str(tmp_path)])
    assert any("b.toml: the id NAN-TO-BANG is taken" in one for one in proofrun.run([str(tmp_path)]).problems)


def test_a_source_tree_may_change_bundled_entries_under_their_ids(tmp_path: Path) -> None:
    folder = tmp_path / "known"
    folder.mkdir()
    (tmp_path / "known.json").write_text("{}")
    (folder / "nan-to-bang.toml").write_text(ENTRY.format(id="NAN-TO-BANG"))
    assert {entry.id: entry for entry in catalogue.load([str(folder)])}["NAN-TO-BANG"].title == "mine"


def test_what_cannot_be_used_costs_itself_and_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.toml").write_text("x = [")
    (tmp_path / "b.toml").write_text("")
    (tmp_path / "c.toml").write_text(ENTRY.format(id="MINE-ONE"))
    (tmp_path / "d.toml").write_text(ENTRY.format(id="MINE-ONE"))
    monkeypatch.setenv(catalogue.VARIABLE, f"{tmp_path}:{tmp_path / 'gone'}")
    skipped: list[catalogue.Skipped] = []
    assert "MINE-ONE" in {entry.id for entry in catalogue.packed(skipped=skipped)}
    assert [Path(item.path).name for item in skipped] == ["a.toml", "b.toml", "d.toml", "gone"]
    assert all(item.why and "a.toml" not in item.why for item in skipped[:2])
    assert catalogue.unusable() == tuple(skipped)
    note = skipped[0].note()
    assert f"{tmp_path.name}/a.toml" in note
    assert str(tmp_path) not in note
    with pytest.raises(BadEntry, match=r"a\.toml: "):
        catalogue.load()


def test_an_entry_without_an_id_is_refused_with_its_file_named(tmp_path: Path) -> None:
    (tmp_path / "b.toml").write_text("")
    with pytest.raises(BadEntry, match=r"b\.toml: it has no id"):
        catalogue.load_folder(str(tmp_path))


def test_a_folder_of_the_command_line_must_exist_even_where_entries_may_be_skipped(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        catalogue.packed([str(tmp_path / "none")], skipped=[])


def test_the_variable_adds_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.toml").write_text(ENTRY.format(id="MINE-ONE"))
    monkeypatch.setenv(catalogue.VARIABLE, str(tmp_path))
    assert "MINE-ONE" in {entry.id for entry in catalogue.load()}
    assert catalogue.check_folders() == (catalogue.KNOWN, str(tmp_path))


class _Point:
    name = "mine"

    def __init__(self, target: Any) -> None:
        self.target = target

    def load(self) -> Any:
        if isinstance(self.target, Exception):
            raise self.target
        return self.target


@pytest.mark.parametrize("as_function", [True, False])
def test_an_installed_package_adds_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, as_function: bool
) -> None:
    (tmp_path / "a.toml").write_text(ENTRY.format(id="MINE-ONE"))
    target: Any = (lambda: tmp_path) if as_function else str(tmp_path)
    monkeypatch.setattr(catalogue, "may_exist", lambda group: True)
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: [_Point(target)])
    assert "MINE-ONE" in {entry.id for entry in catalogue.load()}
    assert "MINE-ONE" not in {entry.id for entry in catalogue.load(plugins=False)}


def test_a_broken_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue, "may_exist", lambda group: True)
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: [_Point(RuntimeError("boom"))])
    with pytest.raises(BadEntry, match="entry point 'mine'"):
        catalogue.load()
    skipped: list[catalogue.Skipped] = []
    assert len(catalogue.load(skipped=skipped)) == len(TABLES)
    assert "boom" in skipped[0].why


def test_missing_folders_and_twins_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        catalogue.load([str(tmp_path / "none")])
    for name in ("a", "b"):
        (tmp_path / f"{name}.toml").write_text(ENTRY.format(id="MINE-ONE"))
    with pytest.raises(BadEntry, match="is taken by"):
        catalogue.load_folder(str(tmp_path))


def test_a_damaged_package_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    broken = tmp_path / "known.json"
    broken.write_text('{"entries": [{}]}')
    monkeypatch.setattr(catalogue, "COMPILED", str(broken))
    catalogue.cards.cache_clear()
    try:
        with pytest.raises(BadEntry, match="bundled catalogue"):
            catalogue.cards()
    finally:
        monkeypatch.undo()
        catalogue.cards.cache_clear()


def test_files_that_are_no_entries_are_named(tmp_path: Path) -> None:
    with pytest.raises(BadEntry, match=r"x\.toml"):
        catalogue.read_toml(str(tmp_path / "x.toml"))
    (tmp_path / "big.toml").write_bytes(b"#" * ((1 << 20) + 1))
    with pytest.raises(BadEntry, match="larger than"):
        catalogue.read_toml(str(tmp_path / "big.toml"))


def test_the_check_collects_problems_instead_of_stopping(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(ENTRY.format(id="MINE-ONE"))
    (tmp_path / "b.toml").write_text(ENTRY.format(id="MINE-ONE"))
    (tmp_path / "c.toml").write_text("no = toml = here")
    (tmp_path / "d.toml").write_text(
        ENTRY.format(id="MINE-TWO").replace("exception = 14 }", "exception = 5 }")
    )
    (tmp_path / "e.toml").write_text(ENTRY.format(id="MINE-THREE").split("[[proof")[0])
    result = proofrun.run([str(tmp_path)])
    assert result.entries == 3
    text = "\n".join(result.problems)
    assert "b.toml: the id MINE-ONE is taken" in text
    assert "c.toml" in text
    assert "MINE-TWO: it: expected match, got absent" in text
    assert "MINE-THREE: no [[proof.match]]" in text


def test_the_check_of_the_bundled_folder_sees_a_stale_compilation(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert proofrun.run([catalogue.KNOWN]).problems == ()
    for target in (tmp_path / "missing.json", tmp_path / "stale.json"):
        if target.name == "stale.json":
            target.write_text("{}")
        monkeypatch.setattr(catalogue, "COMPILED", str(target))
        assert any("out of date" in problem for problem in proofrun.run([catalogue.KNOWN]).problems)
