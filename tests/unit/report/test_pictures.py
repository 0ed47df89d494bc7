"""The drawings: positions, limits, words; pure functions of facts."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crashlab import facts
from crashlab.report.html import svg
from crashlab.report.html.addressmap import address_map
from crashlab.report.html.alignpicture import align_picture
from crashlab.report.html.codewindow import code_lines, marked, registers_of
from crashlab.report.html.lanegrid import counts, lane_picture, warp_rows
from crashlab.report.html.smpicture import sm_picture, summary
from crashlab.report.html.timelinechart import clock, timeline_chart
from crashlab.report.html.windowpicture import window_picture
from crashlab.report.timeline import Event, Sample, Timeline, of_jsonl, of_rows, thinned


def lanes(*addresses: int, bad: bool | None = True) -> tuple[facts.LaneAddress, ...]:
    return tuple(
        facts.LaneAddress(i, facts.Dim3(i, 0, 0), facts.Hex(a), bad, block=facts.Dim3(0, 0, 0), sm=1, warp=2)
        for i, a in enumerate(addresses)
    )


def percentages(drawing: str) -> list[float]:
    return [float(v) for v in re.findall(r'(?:x|x1|x2|width)="([\d.]+)%"', drawing)]


# --- the primitives --------------------------------------------------------------------------------


def test_elements_escape_values_and_children_and_leave_absent_ones_out() -> None:
    drawn = svg.element("text", "<b>&", x=1.5, class_='a"b', text_anchor=None, data_share=2)
    assert drawn == '<text x="1.5" class="a&#34;b" data-share="2">&lt;b&gt;&amp;</text>'
    assert svg.element("rect") == "<rect/>"


def test_percentages_stay_inside_the_picture() -> None:
    assert [svg.percent(v) for v in (-1, 0, 0.12345678, 1, 7)] == ["0%", "0%", "12.346%", "100%", "100%"]


@pytest.mark.parametrize(("share", "anchor"), [(0.0, "start"), (0.5, "middle"), (1.0, "end")])
def test_text_near_an_edge_grows_inwards(share: float, anchor: str) -> None:
    assert svg.anchored(share) == anchor


# --- shared and local memory -----------------------------------------------------------------------


def test_the_window_shows_limit_and_accesses_to_scale() -> None:
    address = facts.Address(
        "recovered", facts.Hex(2000), lanes(2000, 2016), "shared", limit=1000, width_bytes=16
    )
    drawn = str(window_picture(address))
    assert "it ends at 0x3e8; 2 accesses from 0x7d0 to 0x7f0" in drawn
    assert "end 0x3e8 = 1,000 bytes" in drawn
    share = 1000 / (2032 * 1.04)
    assert f'width="{svg.percent(share)}" height="26" class="mem"' in drawn
    assert drawn.count('class="bad"') >= 4
    assert all(0 <= v <= 100 for v in percentages(drawn))


def test_a_near_limit_is_drawn_in_the_enlargement_and_a_far_one_is_not() -> None:
    near = facts.Address(
        "recovered", None, lanes(*range(1000, 1512, 16)), "shared", limit=990, width_bytes=16
    )
    far = near._replace(per_lane=lanes(*range(9_000_000, 9_000_512, 16)))
    assert str(window_picture(near)).count('class="limit"') == 2
    assert str(window_picture(far)).count('class="limit"') == 1


def test_accesses_without_a_known_limit_are_still_drawn() -> None:
    address = facts.Address("recovered", None, lanes(8, bad=None), "local", width_bytes=4)
    assert "the thread&#39;s local memory" in str(window_picture(address))


def test_only_three_warps_are_enlarged_and_the_rest_is_counted() -> None:
    many = tuple(lane._replace(warp=w) for w in range(5) for lane in lanes(16))
    drawn = str(window_picture(facts.Address("recovered", None, many, "shared", limit=8)))
    assert "and 2 more warps" in drawn


@pytest.mark.parametrize("space", ["global", None])
def test_other_spaces_have_no_window(space: str | None) -> None:
    assert window_picture(facts.Address("recovered", None, lanes(1), space)) is None
    assert window_picture(facts.Address("recovered", None, (), "shared")) is None


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.integers(0, 1 << 64), min_size=1, max_size=40),
    st.one_of(st.none(), st.integers(0, 1 << 40)),
    st.integers(0, 4096),
)
def test_any_window_stays_inside_the_picture(values: list[int], limit: int | None, width: int) -> None:
    address = facts.Address("recovered", None, lanes(*values), "shared", limit=limit, width_bytes=width)
    assert all(0 <= v <= 100 for v in percentages(str(window_picture(address))))


# --- misaligned ------------------------------------------------------------------------------------


def test_a_misaligned_access_is_drawn_where_it_begins() -> None:
    address = facts.Address(
        "recovered", None, lanes(0x1004, 0x1008), "global", kind="misaligned", width_bytes=16
    )
    drawn = str(align_picture(address))
    assert "begins 4, 8 bytes past a multiple of 16" in drawn
    assert f'x="{svg.percent(4 / 16 / 3 + 1 / 3)}"' in drawn


def test_aligned_or_unjudged_accesses_have_no_such_picture() -> None:
    assert align_picture(facts.Address("recovered", None, lanes(0x1000), width_bytes=16)) is None
    assert align_picture(facts.Address("recovered", None, lanes(3), width_bytes=1)) is None


# --- global addresses ------------------------------------------------------------------------------


def test_the_map_lists_places_by_address_with_distances_between_them() -> None:
    marks = (
        facts.Landmark("dumped allocation", facts.Hex(0x7F0000000000), 4096),
        facts.Landmark("argument 0", facts.Hex(0x7F0000000100)),
    )
    address = facts.Address(
        "recovered", facts.Hex(0x7F0040001000), lanes(0x7F0040001000), "global", width_bytes=4
    )
    drawn = str(address_map(address, marks))
    words = re.findall(r"<text[^>]*>([^<]*)</text>", drawn)
    assert words[0].startswith("dumped allocation, 4,096 bytes")
    assert any("bytes before its end" in w for w in words)
    assert any("= 1.0 GiB" in w for w in words)
    assert words[-2] == "bad access"


def test_null_and_impossible_addresses_are_held_against_the_ends_of_the_address_space() -> None:
    null = str(address_map(facts.Address("recovered", facts.Hex(8), lanes(8), "global"), ()))
    assert "nothing is mapped here" in null
    wild = str(address_map(facts.Address("recovered", facts.Hex(1 << 60), lanes(1 << 60), "global"), ()))
    assert "above this no address is valid" in wild


def test_neighbouring_accesses_are_one_place_and_innocent_ones_another() -> None:
    mixed = (*lanes(1 << 40, (1 << 40) + 4), *lanes((1 << 40) + 8, bad=False))
    drawn = str(address_map(facts.Address("recovered", facts.Hex(1 << 40), mixed, "global"), ()))
    assert "2 × bad access" in drawn
    assert "access that was not blamed" in drawn


def test_only_the_nearest_landmarks_are_shown() -> None:
    marks = [facts.Landmark(f"argument {i}", facts.Hex((1 << 40) + (i << 30))) for i in range(60)]
    drawn = str(address_map(facts.Address("recovered", facts.Hex(1 << 40), (), "global"), marks))
    assert "argument 3 " in drawn
    assert "argument 59 " not in drawn
    assert address_map(facts.Address("recovered"), marks) is None


# --- SMs -------------------------------------------------------------------------------------------


def test_the_map_has_a_cell_for_each_sm_and_marks_the_faulting() -> None:
    gpu = facts.Gpu(
        0, sm_count=20, kernels=("k",), sms=(facts.SmState(3, 2, 8, (0,), "Fault"), facts.SmState(5, 1, 4))
    )
    drawn = str(sm_picture(gpu))
    assert drawn.count("<rect") == 20
    assert drawn.count('class="corner"') == 1
    assert "SM 3: 2 blocks, 8 warps of k; Fault" in drawn
    assert summary(gpu) == "2 of 20 SMs held blocks when the dump was taken; 1 reported the fault (SM 3)"
    assert sm_picture(facts.Gpu(0)) is None


def test_a_liar_about_the_number_of_sms_does_not_make_a_giant() -> None:
    assert str(sm_picture(facts.Gpu(0, sm_count=1 << 31))).count("<rect") == 528


# --- lanes -----------------------------------------------------------------------------------------


def test_lanes_are_judged_by_their_access_first_and_by_masks_else() -> None:
    address = facts.Address("recovered", None, (*lanes(4), lanes(4)[0]._replace(lane=1, predicated_off=True)))
    masks = (
        facts.WarpState(1, 2, facts.Dim3(0, 0, 0), facts.Hex(0xF), facts.Hex(0x7), None),
        facts.WarpState(9, 1, None, facts.Hex(0x3), facts.Hex(0x1), facts.Hex(0x1)),
    )
    rows = warp_rows(address, masks)
    assert [state for state, _ in rows[0].lanes[:5]] == ["bad", "off", "active", "inactive", "none"]
    assert [state for state, _ in rows[1].lanes[:3]] == ["marked", "inactive", "none"]
    assert counts(rows).startswith("1 accessed badly; 1 carries the exception")
    assert str(lane_picture(rows)).count("<rect") == 64
    assert lane_picture([]) is None


def test_many_warps_are_counted_not_drawn() -> None:
    rows = warp_rows(None, [facts.WarpState(i, 0) for i in range(60)])
    assert "and 36 more warps" in str(lane_picture(rows))


# --- the instruction -------------------------------------------------------------------------------


def test_registers_of_the_faulting_line_are_marked_everywhere() -> None:
    assert registers_of("@!P0 STG.E desc[UR6][R4.64], R13") == {"P0", "UR6", "R4", "R5", "R13"}
    assert marked("@P1 IADD3 R5, R50, UR6", frozenset({"R5", "UR6"})) == (
        "@P1 <b>IADD3</b> <mark>R5</mark>, R50, <mark>UR6</mark>"
    )
    assert code_lines(None) == []
    assert code_lines(facts.Instruction("NOP"))[0].fault


# --- the run ---------------------------------------------------------------------------------------


def test_the_chart_has_panels_bands_events_and_an_axis() -> None:
    rows = tuple(Sample(t, 10.0, 2.0, 0.5, "STALLED" if t > 5 else "PROGRESSING") for t in range(10))
    drawn = str(timeline_chart(Timeline(rows, (Event(6.0, "fault <x>", "fault"),))))
    assert drawn.count('class="curve"') == 3
    assert drawn.count("st-stalled") == 3
    assert drawn.count("ev-fault") == 3
    assert "fault &lt;x&gt;" in drawn
    assert "0:00:09" in drawn
    assert "the last state was STALLED; first fault at 0:00:06" in drawn


def test_events_alone_make_a_chart_and_nothing_makes_none() -> None:
    assert 'class="plot"' in str(timeline_chart(Timeline((), (Event(1.0, "x"), Event(2.0, "y")))))
    assert timeline_chart(Timeline()) is None


def test_a_long_run_is_thinned_without_losing_extremes_or_changes_of_state() -> None:
    rows = [Sample(float(t), 100.0) for t in range(50_000)]
    rows[31_234] = Sample(31_234.0, 0.0, state="STALLED")
    kept = thinned(tuple(rows))
    assert len(kept) < 3000
    assert any(s.state == "STALLED" for s in kept)
    assert len(str(timeline_chart(Timeline(tuple(rows))))) < 100_000


def test_points_of_a_long_curve_are_not_cut_off() -> None:
    rows = tuple(Sample(float(t), float(t % 7)) for t in range(900))
    points = re.search(r'points="([^"]*)"', str(timeline_chart(Timeline(rows))))
    assert points is not None
    assert len(points.group(1).split()) == 900


@pytest.mark.parametrize(("seconds", "text"), [(0, "0:00:00"), (3723.9, "1:02:03"), (-5, "-0:00:05")])
def test_the_clock_counts_from_the_start(seconds: float, text: str) -> None:
    assert clock(seconds) == text


def test_rows_become_samples_and_events_and_rubbish_is_left_out() -> None:
    found = of_rows([
        {"t": 2, "tokens_per_s": 5, "in_flight": True, "state": 3}, {"t": 1, "event": "x", "kind": "fault"},
        {"t": float("nan")}, {"t": 10**400}, [], None, {"t": 3, "event": "y", "kind": 5},
    ])  # fmt: skip
    assert found.samples == (Sample(2.0, 5.0),)
    assert found.events == (Event(1.0, "x", "fault"), Event(3.0, "y", "note"))
    assert found.span == (1.0, 3.0)


@settings(max_examples=50, deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes_are_a_timeline(data: bytes) -> None:
    of_jsonl(data + b'\n{"t": 1, "tokens_per_s": 2}\n{"t": 1, "tok')
