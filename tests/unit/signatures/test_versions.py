from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crashlab.errors import CrashlabError
from crashlab.signatures.versions import contains, parse, parse_range


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("9.19.0.56", "9.23.1"),
        ("9.9.0", "9.19.0"),
        ("595.71.05", "595.84"),
        ("580.95.05", "580.142"),
        ("2.11.0.dev20260101", "2.11.0"),
        ("2.11.0rc1", "2.11.0"),
        ("2.11.0a0+git12", "2.11.0rc1"),
        ("0.6.16", "0.6.16.post3"),
        ("0.6.16.post3", "0.6.17"),
        ("0.23.1rc1.dev714+gabc", "0.23.1rc1"),
        ("b4999", "b5518 (26b79b6c)"),
        ("0.6.18", "0.7.0.dev20260922"),
        ("1.0.dev1", "1.0a1"),
    ],
)
def test_order_is_that_of_releases(older: str, newer: str) -> None:
    first, second = parse(older), parse(newer)
    assert first is not None
    assert second is not None
    assert first < second


@pytest.mark.parametrize(
    ("one", "other"), [("12.9", "12.9.0"), ("v0.25.1", "0.25.1"), ("2.11.0+cu130", "2.11.0+cu128")]
)
def test_spellings_of_one_version_are_equal(one: str, other: str) -> None:
    assert parse(one) == parse(other) is not None


@pytest.mark.parametrize(
    "text",
    [
        "d749821db",
        "nightly",
        "",
        "main",
        "0.1.dev1+g0a1b2c3d4",
        "20260922123456",
        "1234567",
        "1..2",
        "1.2.3.4.5.6.7",
        "9" * 40,
        "１.２",
        "x" * 1000,
    ],
)
def test_what_has_no_order_is_unknown_never_old(text: str) -> None:
    assert parse(text) is None
    assert contains("<99", text) is None


@pytest.mark.parametrize(
    ("range_text", "version", "expected"),
    [
        ("<9.23.1", "9.19.0.56", True),
        ("<9.23.1", "9.23.1", False),
        ("<9.23.1", "9.24.0.43", False),
        (">=0.6.11,<0.6.18", "0.6.14.post1", True),
        (">=0.6.11,<0.6.18", "0.6.18", False),
        ("==0.6.8.post1 || ==0.6.14", "0.6.14", True),
        ("==0.6.8.post1 || ==0.6.14", "0.6.13", False),
        ("4.5.0", "4.5.0", True),
        ("=4.5.0", "4.5", True),
        ("!=4.5.0", "4.5.0", False),
        ("==13.3.*", "13.3.33", True),
        ("==13.0.*", "13", True),
        ("!=13.3.*", "13.2.1", True),
        ("==580.82.*", "580.82.07", True),
        (">1.0", "1.0.post1", True),
        ("<=1.0", "1.0.dev3", True),
        ("<0.28", "0.28.1rc1.dev681+ge7edf17ce", False),
    ],
)
def test_ranges(range_text: str, version: str, expected: bool) -> None:
    assert contains(range_text, version) is expected


def test_a_range_can_refer_to_another_fact() -> None:
    known = {"torch_cuda": "13.0"}.get
    assert contains("<$torch_cuda", "12.8.93", known) is True
    assert contains("<$torch_cuda", "13.0.88", known) is False
    assert contains("<$cuda_driver", "12.8", known) is None
    assert contains("<$torch_cuda", "12.8") is None
    assert contains("<$torch_cuda", "12.8", {"torch_cuda": "nightly"}.get) is None


def test_unknown_part_does_not_hide_a_known_one() -> None:
    assert contains("<$missing || >=1.0", "2.0", lambda key: None) is True
    assert contains("<$missing,>=3.0", "2.0", lambda key: None) is False


@pytest.mark.parametrize(
    "bad", ["", "<", "latest", "<<1", ">=1.0,,<2", "<1.*", "== x.*", "$", "<$bad-key", "1.0 2.0", "||"]
)
def test_unreadable_ranges_are_refused_with_a_hint(bad: str) -> None:
    with pytest.raises(CrashlabError) as caught:
        parse_range(bad)
    assert caught.value.hint


@given(st.text(max_size=60))
def test_any_text_is_a_version_or_unknown(text: str) -> None:
    version = parse(text)
    assert version is None or version.release


@given(st.text(max_size=80), st.text(max_size=40))
def test_only_crashlab_errors_leave_the_range_reader(range_text: str, version: str) -> None:
    with contextlib.suppress(CrashlabError):
        assert contains(range_text, version) in (True, False, None)


@given(st.lists(st.integers(0, 10_000), min_size=1, max_size=5))
def test_every_version_equals_itself_and_lies_in_its_own_range(parts: list[int]) -> None:
    text = ".".join(map(str, parts))
    assert contains(f"=={text}", text) is True
    assert contains(f"<={text},>={text}", text) is True
    assert contains(f"<{text}", text) is False
