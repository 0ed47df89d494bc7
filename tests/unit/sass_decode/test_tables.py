"""The shipped tables: complete, readable, quick to load."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from crashlab.errors import CrashlabError
from crashlab.sass.decode import decoder as decoder_module
from crashlab.sass.decode.decoder import Decoder, load_decoder
from crashlab.sass.decode.model import ClassModel
from crashlab.sass.decode.tables import (
    FAMILIES,
    FOLDER,
    block_lines,
    block_texts,
    load_blocks,
    own_blocks,
    own_texts,
)


def test_every_family_has_a_table_and_no_table_is_left_over() -> None:
    names = {name.removesuffix(".txt") for name in os.listdir(FOLDER) if name.endswith(".txt")}
    assert names == set(FAMILIES)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_table_inherits_from_the_parent_that_the_family_names(family: str) -> None:
    parent, dropped, own = own_texts(Path(FOLDER, f"{family}.txt").read_text(encoding="utf-8"))
    assert parent == FAMILIES[family][0]
    assert not set(dropped) & set(own)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_block_compiles_and_its_rows_fit_its_text(family: str) -> None:
    own, _ = own_blocks(Path(FOLDER, f"{family}.txt").read_text(encoding="utf-8"))
    for opcode, blocks in own.items():
        for block in blocks:
            model = ClassModel(block)
            assert model.opcode == opcode
            assert model.groups
            for number, group in enumerate(model.groups):
                cells = {len(row) for row in group.rows.values()}
                numbered = [piece for piece in model.pieces if not isinstance(piece, str)]
                assert len(cells) == 1
                assert {cell for place, cell in numbered if place == number} == set(range(cells.pop()))


@pytest.mark.parametrize("family", FAMILIES)
def test_every_row_is_found_by_the_bits_that_choose_it(family: str) -> None:
    own, _ = own_blocks(Path(FOLDER, f"{family}.txt").read_text(encoding="utf-8"))
    for block in (block for blocks in own.values() for block in blocks):
        for group in ClassModel(block).groups:
            assert all(group.cells(key) == list(row) for key, row in group.rows.items())
            assert all(not key & ~group.mask for key in group.rows)


@pytest.mark.parametrize("family", FAMILIES)
def test_blocks_of_one_opcode_divide_it_without_overlap(family: str) -> None:
    for blocks in load_blocks(FOLDER, family).values():
        keys = [block[0].split(" ")[4:6] for block in blocks]
        assert len(keys) == len({tuple(key) for key in keys})


@pytest.mark.parametrize("family", ["sm_75", "sm_90", "sm_121"])
def test_loading_a_table_takes_less_than_ten_milliseconds(family: str) -> None:
    best = 1.0
    for _ in range(9):
        start = time.process_time()
        Decoder(block_texts(FOLDER, family))
        best = min(best, time.process_time() - start)
    assert best < 0.010


def test_a_child_replaces_and_drops_blocks_of_its_parent(tmp_path: Path) -> None:
    (tmp_path / "sm_1.txt").write_text(
        "# root\n\n@ 001 A P 0 0\nt A\n\n@ 002 B P 0 0\nt B\n\n@ 003 C P 0 0\nt C\n"
    )
    (tmp_path / "sm_2.txt").write_text("# child\ninherits sm_1\ndrop 003\n\n@ 002 BB P 0 0\nt BB\n")
    texts = block_texts(str(tmp_path), "sm_2")
    assert {opcode: [block_lines(b)[1] for b in blocks] for opcode, blocks in texts.items()} == {
        1: ["t A"],
        2: ["t BB"],
    }


def test_a_missing_table_is_an_error_with_a_hint(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(decoder_module, "FOLDER", str(tmp_path))
    load_decoder.cache_clear()
    with pytest.raises(CrashlabError) as caught:
        load_decoder("sm_90")
    assert caught.value.hint
    load_decoder.cache_clear()
