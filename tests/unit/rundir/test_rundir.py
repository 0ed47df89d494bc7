"""The run directory: written to survive, read whatever is left of it."""

from __future__ import annotations

import contextlib
import errno
import json
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crashlab.errors import CrashlabError, MissingTool, UnreadableInput, UsageError
from crashlab.report.fromrundir import analyze_rundir
from crashlab.report.options import AnalyzeOptions
from crashlab.rundir import journal, layout, redact, retention
from crashlab.rundir.journal import Journal, Reserve
from crashlab.rundir.keep import bring_home
from crashlab.rundir.lines import json_lines
from crashlab.rundir.output import merged_blocks, missing, pieces
from crashlab.rundir.reader import open_run
from crashlab.rundir.writer import RunWriter, default_name
from tests.support.fakeprogram import dump_bytes

FAST = AnalyzeOptions(fast=True)


@pytest.fixture
def writer(tmp_path: Path) -> RunWriter:
    made = RunWriter.create(str(tmp_path / "run"), ["prog"])
    made.start({"argv": ["prog", "arg"], "confounds": [{"name": "X", "value": "1", "why": "it is bad"}]})
    return made


class TestNames:
    def test_segments(self) -> None:
        assert layout.segment_name(1, "stdout", 0) == "001.stdout.log"
        assert layout.parse_segment("012.stderr.+77.log") == (12, "stderr", 77)
        assert layout.parse_segment("other.log") is None

    @settings(deadline=None)
    @given(st.integers(1, 99999), st.sampled_from(layout.STREAMS), st.integers(0, 10**15))
    def test_names_and_their_reading_agree(self, attempt: int, stream: str, start: int) -> None:
        assert layout.parse_segment(layout.segment_name(attempt, stream, start)) == (attempt, stream, start)

    def test_a_run_is_recognised(self, tmp_path: Path, writer: RunWriter) -> None:
        assert layout.is_run(writer.path)
        assert not layout.is_run(tmp_path)
        assert not layout.is_run("bad\0path")

    @pytest.mark.parametrize(
        ("argv", "slug"),
        [
            (["vllm", "serve", "x"], "vllm"),
            (["/usr/bin/python3", "-u", "/srv/train model.py"], "train-model.py"),
            (["python", "-c"], "python"),
            (["--"], "run"),
        ],
    )
    def test_a_default_name_tells_time_and_program(self, argv: list[str], slug: str) -> None:
        assert default_name(argv, 0.0) == f"19700101T000000Z-{slug}"


class TestCreate:
    def test_the_default_name_is_made_unique(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        first, second = RunWriter.create(None, ["x"]), RunWriter.create(None, ["x"])
        assert first.path != second.path
        assert Path(first.path).parent == tmp_path / "crashlab-runs"

    def test_a_folder_that_holds_something_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "run").mkdir()
        (tmp_path / "run" / "x").write_text("")
        with pytest.raises(UsageError):
            RunWriter.create(str(tmp_path / "run"), ["x"])

    def test_an_empty_folder_is_used(self, tmp_path: Path) -> None:
        (tmp_path / "run").mkdir()
        assert RunWriter.create(str(tmp_path / "run"), ["x"]).path == str(tmp_path / "run")

    def test_without_a_writable_place_the_next_is_taken_and_told(self, tmp_path: Path) -> None:
        made = RunWriter.create("/proc/nowhere/run", ["x"], fallbacks=[str(tmp_path)])
        made.start({})
        assert made.path.startswith(str(tmp_path))
        assert "/proc/nowhere/run could not be written" in made.problems[0]

    def test_a_path_that_the_driver_would_misread_is_not_used(self, tmp_path: Path) -> None:
        made = RunWriter.create(str(tmp_path / "50%"), ["x"], fallbacks=[str(tmp_path)])
        assert "%" not in made.path

    def test_with_no_place_at_all_the_user_is_told(self) -> None:
        with pytest.raises(MissingTool, match="No run directory"):
            RunWriter.create("/proc/nowhere/run", ["x"], fallbacks=["/proc/nowhere"])


class TestJournal:
    def test_every_record_is_there_when_append_returns(self, tmp_path: Path) -> None:
        one = Journal(str(tmp_path / "j"))
        for number in range(10):
            one.append({"n": number})
            assert len((tmp_path / "j").read_text().splitlines()) == number + 1

    def test_a_full_disk_uses_the_reserve_then_waits_and_catches_up(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        reserve = Reserve(str(tmp_path / "reserve"), 4096)
        one = Journal(str(tmp_path / "j"), reserve)
        real, full = os.write, [True]

        def write(fd: int, data: bytes) -> int:
            if full[0] and not (len(data) < 20 and not reserve.held):
                raise OSError(errno.ENOSPC, "No space left on device")
            return real(fd, data)

        monkeypatch.setattr(journal.os, "write", write)
        assert one.append({"a": 1})
        assert not reserve.held
        assert not one.append({"long": "x" * 100})
        assert not one.append({"b": 2})
        full[0] = False
        assert one.append({"c": 3})
        assert [next(iter(row)) for row in json_lines(str(tmp_path / "j"))] == ["a", "long", "b", "c"]

    def test_half_a_record_is_isolated_on_a_line_of_its_own(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        one = Journal(str(tmp_path / "j"))
        real, short = os.write, [True]

        def write(fd: int, data: bytes) -> int:
            if short[0]:
                short[0] = False
                return real(fd, data[:5])
            return real(fd, data)

        monkeypatch.setattr(journal.os, "write", write)
        assert not one.append({"first": 1})
        assert one.append({"second": 2})
        problems: list[str] = []
        rows = list(json_lines(str(tmp_path / "j"), problems))
        assert rows == [{"first": 1}, {"second": 2}]
        assert "1 line(s) were torn" in problems[0]

    def test_a_file_that_cannot_be_opened_keeps_a_bounded_number(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(journal, "_KEPT_IN_MEMORY", 3)
        one = Journal("/nowhere/j")
        for number in range(5):
            assert not one.append({"n": number})
        assert one.lost == 2
        one.close()

    def test_a_reserve_that_finds_no_room_is_none(self) -> None:
        assert not Reserve("/nowhere/r", 10).held


class TestWriter:
    def test_a_file_that_cannot_be_written_is_a_problem_not_an_error(self, writer: RunWriter) -> None:
        os.mkdir(writer.file("report.json"))
        assert not writer.write_json("report.json", {})
        assert any("report.json cannot be written" in what for what in writer.problems)
        assert not [name for name in os.listdir(writer.path) if name.endswith(".tmp")]

    def test_a_problem_is_told_once(self, writer: RunWriter) -> None:
        writer.problem("x")
        writer.problem("x")
        assert writer.problems == ["x"]

    def test_the_manifest_has_sizes_and_hashes(
        self, writer: RunWriter, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        Path(writer.file("cores", "c")).write_bytes(b"abc")
        writer.gpu_sample({"gpu": 0})
        writer.finish(exit_code=0)
        manifest = json.loads(Path(writer.file("manifest.json")).read_text())
        rows = {row["path"]: row for row in manifest["files"]}
        assert rows["cores/c"]["bytes"] == 3
        assert rows["cores/c"]["sha256"].startswith("ba7816bf")
        assert "gpu.jsonl" in rows
        assert ".reserve" not in rows

    def test_events_that_cannot_be_written_are_told_at_the_end(self, tmp_path: Path) -> None:
        made = RunWriter.create(str(tmp_path / "run"), ["x"])
        made._events.close()
        made._events.error = "No space left on device"
        made.event("x")
        assert "events cannot be written: No space left on device" in made.problems


class TestReader:
    def test_a_folder_that_is_no_run_is_refused_with_a_hint(self, tmp_path: Path) -> None:
        with pytest.raises(UnreadableInput) as error:
            open_run(tmp_path)
        assert error.value.hint

    def test_what_is_left_after_a_kill_is_read_and_the_missing_end_is_said(self, writer: RunWriter) -> None:
        writer.event("started", attempt=1, pid=5)
        with open(writer.file("events.jsonl"), "a") as file:
            file.write('{"event": "dump", "att')
        run = open_run(writer.path)
        assert [event.kind for event in run.events] == ["started"]
        assert any("no end" in what for what in run.problems)
        assert any("torn" in what for what in run.problems)

    def test_a_program_that_ended_is_recorded_whole_though_its_analysis_has_not(
        self, writer: RunWriter
    ) -> None:
        writer.event("started", attempt=1, pid=5)
        writer.event("ended", attempt=1)
        assert open_run(writer.path).problems == ()
        writer.event("started", attempt=2, pid=6)
        assert any("no end" in what for what in open_run(writer.path).problems)

    @pytest.mark.parametrize(
        "content", [b"", b"[]", b"{", b'{"schema": "crashlab.run/9"}', b"[" * 100_000, b"\xff\x00"]
    )
    def test_a_broken_run_json_is_a_problem(self, writer: RunWriter, content: bytes) -> None:
        Path(writer.file("run.json")).write_bytes(content)
        assert any("run.json" in what for what in open_run(writer.path).problems)

    def test_a_run_without_run_json_is_still_one(self, writer: RunWriter) -> None:
        os.unlink(writer.file("run.json"))
        assert open_run(writer.path).info == {}

    @settings(max_examples=60, deadline=None)
    @given(st.lists(st.binary(max_size=300), max_size=6), st.binary(max_size=300))
    def test_only_our_errors_leave_whatever_the_files_hold(
        self, tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], info: bytes
    ) -> None:
        folder = tmp_path_factory.mktemp("run")
        (folder / "output").mkdir()
        (folder / "run.json").write_bytes(info)
        (folder / "events.jsonl").write_bytes(b"\n".join(lines))
        (folder / "output" / "001.index.jsonl").write_bytes(b"\n".join(lines))
        (folder / "output" / "001.stdout.log").write_bytes(info)
        with contextlib.suppress(CrashlabError):
            analyze_rundir(folder, FAST)

    fields = st.dictionaries(
        st.sampled_from(
            ["attempt", "path", "bytes", "code", "signal", "pid", "libraries", "reason", "exit_code", "ok"]
        ),
        st.one_of(
            st.none(), st.integers(), st.booleans(), st.text(max_size=8), st.lists(st.integers(), max_size=2)
        ),
    )

    @settings(max_examples=60, deadline=None)
    @given(
        st.lists(
            st.tuples(
                st.sampled_from(["dump", "hang", "xid", "ended", "libraries", "gpu", "problem"]), fields
            ),
            max_size=6,
        )
    )
    def test_events_with_fields_of_any_type_are_read(
        self, tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, dict[str, object]]]
    ) -> None:
        folder = tmp_path_factory.mktemp("run")
        text = "".join(json.dumps({"event": kind, **fields}) + "\n" for kind, fields in rows)
        (folder / "events.jsonl").write_text(text)
        with contextlib.suppress(CrashlabError):
            analyze_rundir(folder, FAST)


class TestOutput:
    def put(self, writer: RunWriter, name: str, data: bytes) -> None:
        Path(writer.file("output", name)).write_bytes(data)

    def index(self, writer: RunWriter, *rows: tuple[str, int, int]) -> None:
        text = "".join(
            json.dumps({"m": float(n), "s": s, "o": o, "n": c}) + "\n" for n, (s, o, c) in enumerate(rows)
        )
        Path(writer.file("output", "001.index.jsonl")).write_text(text)

    def test_streams_are_merged_in_the_order_in_which_lines_ended(self, writer: RunWriter) -> None:
        self.put(writer, "001.stdout.log", b"a1\na2\n")
        self.put(writer, "001.stderr.log", b"e1\n")
        self.index(writer, ("stdout", 0, 4), ("stderr", 0, 3), ("stdout", 4, 2))
        assert b"".join(merged_blocks(open_run(writer.path), 1)) == b"a1\ne1\na2\n"

    def test_what_the_index_does_not_cover_comes_last(self, writer: RunWriter) -> None:
        self.put(writer, "001.stdout.log", b"late")
        self.put(writer, "001.stderr.log", b"e\n")
        self.index(writer, ("stderr", 0, 2), ("nonsense", 1, 1), ("stderr", 0, 1))
        assert b"".join(merged_blocks(open_run(writer.path), 1)) == b"e\nlate\n"

    def test_segments_are_one_stream_and_gaps_are_told(self, writer: RunWriter) -> None:
        self.put(writer, "001.stdout.log", b"abc")
        self.put(writer, "001.stdout.+3.log", b"def")
        self.put(writer, "001.stdout.+10.log", b"xyz")
        run = open_run(writer.path)
        assert b"".join(piece.data for piece in pieces(run, 1)) == b"abcdefxyz"
        assert missing(run, 1) == ("4 bytes of stdout from byte 6 on were not kept.",)

    def test_overflow_is_read_where_it_lies_and_comes_home(self, writer: RunWriter, tmp_path: Path) -> None:
        overflow = tmp_path / f"crashlab-{os.getuid()}-x"
        overflow.mkdir(mode=0o700)
        self.put(writer, "001.stdout.log", b"abc")
        (overflow / "001.stdout.+3.log").write_bytes(b"def")
        Path(writer.file("run.json")).write_text(
            json.dumps({"schema": layout.SCHEMA, "overflow": str(overflow)})
        )
        assert b"".join(p.data for p in pieces(open_run(writer.path), 1)) == b"abcdef"
        assert bring_home(writer.path, str(overflow))
        assert not overflow.exists()
        assert b"".join(p.data for p in pieces(open_run(writer.path), 1)) == b"abcdef"

    def test_overflow_that_finds_no_room_stays(self, writer: RunWriter, tmp_path: Path) -> None:
        overflow = tmp_path / f"crashlab-{os.getuid()}-x"
        overflow.mkdir(mode=0o700)
        (overflow / "001.stdout.+3.log").write_bytes(b"def")
        assert not bring_home("/proc/nowhere", str(overflow))
        self.put(writer, "001.stdout.+3.log", b"other")
        assert not bring_home(writer.path, str(overflow))
        assert (overflow / "001.stdout.+3.log").exists()
        assert bring_home(writer.path, str(tmp_path / "none"))


class TestRetention:
    def test_first_and_newest_stay(self) -> None:
        rows = [("a", 1.0, 10), ("b", 2.0, 10), ("c", 3.0, 10), ("d", 4.0, 10)]
        assert retention.choose(rows, 40) == ()
        assert retention.choose(rows, 30) == ("b",)
        assert retention.choose(rows, 0) == ("b", "c")

    @settings(deadline=None)
    @given(st.lists(st.tuples(st.floats(0, 1e6), st.integers(0, 100)), max_size=12), st.integers(0, 500))
    def test_never_both_ends_never_more_than_needed(self, rows: list[tuple[float, int]], cap: int) -> None:
        dumps = [(str(n), when, size) for n, (when, size) in enumerate(rows)]
        gone = retention.choose(dumps, cap)
        order = sorted(dumps, key=lambda row: (row[1], row[0]))
        assert not {row[0] for row in (*order[:1], *order[-1:])} & set(gone)
        total = sum(size for _, _, size in dumps)
        if total <= cap:
            assert gone == ()

    def test_files_are_removed_and_told(self, tmp_path: Path) -> None:
        paths = []
        for number in range(4):
            path = tmp_path / str(number)
            path.write_bytes(b"x" * 10)
            os.utime(path, (number, number))
            paths.append(str(path))
        assert [one.path for one in retention.enforce([*paths, "/nowhere"], 30)] == [paths[1]]
        assert retention.enforce(paths, None) == ()
        assert not os.path.exists(paths[1])


class TestRedaction:
    @pytest.mark.parametrize(
        "argv",
        [
            ["--api-key", "sesame-1"],
            ["--hf-token=sesame-1"],
            ["HF_TOKEN=sesame-1"],
            ["--password", "sesame-1"],
            ["--url", "https://me:sesame-1@host/x"],
        ],
    )
    def test_secrets_of_a_command_line_go(self, argv: list[str]) -> None:
        assert "sesame" not in " ".join(redact.command(argv))

    def test_what_only_sounds_like_a_secret_stays(self) -> None:
        argv = [
            "--max-num-batched-tokens",
            "8192",
            "--tokenizer",
            "x/y",
            "--kv-cache-dtype=fp8",
            "--api-key",
            "--v",
        ]
        assert redact.command(argv) == argv

    @pytest.mark.parametrize(
        "secret",
        [
            "hf_" + "a" * 30,
            "sk-" + "b" * 30,
            "ghp_" + "c" * 30,
            "AKIA" + "D" * 16,
            "eyJhbGciOiJI.eyJzdWIiOiIx.abc",
        ],
    )
    def test_secrets_are_known_by_their_looks(self, secret: str) -> None:
        assert secret not in redact.text(f"x {secret} y")

    def test_of_variables_that_do_not_matter_only_the_name_is_kept(self) -> None:
        given_ = {
            "CUDA_VISIBLE_DEVICES": "0",
            "HF_TOKEN": "s",
            "MY_NAME": "ann",
            "VLLM_API_KEY": "s",
            "NCCL_DEBUG": "INFO",
        }
        assert redact.variables(given_) == {
            "CUDA_VISIBLE_DEVICES": "0",
            "HF_TOKEN": "<redacted>",
            "MY_NAME": "<not recorded>",
            "VLLM_API_KEY": "<redacted>",
            "NCCL_DEBUG": "INFO",
        }


class TestReportOnARun:
    def test_a_dump_that_no_event_names_belongs_to_the_run(self, writer: RunWriter) -> None:
        writer.event("started", attempt=1, pid=5)
        Path(writer.file("cores", "h.5.1.nvcudmp")).write_bytes(dump_bytes("oob_load"))
        report = analyze_rundir(writer.path, FAST)
        assert report.verdict.kind == "gpu-fault"
        assert "How the command ended was not recorded." in report.provenance
        assert "X=1 was set: it is bad." in report.provenance

    def test_a_dump_that_was_dropped_is_mentioned_with_its_size(self, writer: RunWriter) -> None:
        writer.event("dump", attempt=1, path="cores/gone", bytes=12345, state="settled")
        writer.event("dump-dropped", attempt=1, path="cores/gone", bytes=12345)
        writer.event("dump", attempt=1, path="cores/lost")
        notes = analyze_rundir(writer.path, FAST).provenance
        assert "The dump gone (12,345 bytes) was removed to keep below the size limit." in notes
        assert "The dump lost is not there any more." in notes

    def test_versions_come_from_the_worker_that_dumped(self, writer: RunWriter) -> None:
        def library(key: str, version: str | None, path: str) -> dict[str, object]:
            return {"key": key, "version": version, "path": path, "source": "file name"}

        writer.event("libraries", attempt=1, pid=4, libraries=[library("cudnn", "9.1.0", "/a/libcudnn.so.9")])
        writer.event("libraries", attempt=1, pid=5, libraries=[library("cudnn", None, "/b/libcudnn.so.9"), 7])
        writer.event(
            "versions",
            attempt=1,
            libraries=[{"path": "/b/libcudnn.so.9", "version": "9.19.0"}],
            torch_cuda="13.0",
        )
        writer.event("duplicate-libraries", attempt=1, what="cudnn is loaded from 2 files")
        writer.event("gpu", name="NVIDIA H200", driver="580.159")
        writer.event("dump", attempt=1, path="cores/h.5.1.nvcudmp", pid=5)
        Path(writer.file("cores", "h.5.1.nvcudmp")).write_bytes(dump_bytes("oob_load"))
        report = analyze_rundir(writer.path, FAST)
        assert report.environment is not None
        assert report.environment["cudnn"].value == "9.19.0"
        assert report.environment["cudnn"].source == "loaded by process 5: libcudnn.so.9"
        assert report.environment["torch_cuda"].value == "13.0"
        assert "cudnn is loaded from 2 files." in report.provenance

    @pytest.mark.parametrize(
        ("events", "kind", "words"),
        [
            ([("ended", {"exit_code": 0})], "no-fault", "exit code 0"),
            ([("ended", {"exit_code": 1, "ended_by": "user"})], "no-fault", "on request"),
            ([("ended", {"exit_code": 1, "ended_by": "outlived"})], "no-fault", "outlived"),
            ([("ended", {"signal": "SIGSEGV"})], "host-death", "SIGSEGV"),
            ([("xid", {"code": 79}), ("ended", {"signal": "SIGKILL"})], "host-death", "Xid 79"),
            ([("hang", {"reason": "no output"})], "stall", "no GPU dump could be asked for"),
            ([("hang", {"reason": "no output"}), ("asked-for-dump", {"ok": True})], "stall", "did not come"),
            ([("started", {})], "inconclusive", "no GPU fault"),
        ],
    )
    def test_without_evidence_the_record_decides(
        self, writer: RunWriter, events: list[tuple[str, dict[str, object]]], kind: str, words: str
    ) -> None:
        for name, fields in events:
            writer.event(name, attempt=1, **fields)
        verdict = analyze_rundir(writer.path, FAST).verdict
        assert verdict.kind == kind
        assert words in verdict.headline

    def test_a_dump_without_any_kernel_after_a_hang_is_a_stall(
        self, writer: RunWriter, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from crashlab.report import fromrundir

        writer.event("hang", attempt=1, reason="no output for 9 s")
        Path(writer.file("cores", "c")).write_bytes(dump_bytes("oob_load"))
        real = fromrundir.build.analyze

        def nothing(paths: object, options: object) -> object:
            report = real(paths, options)  # type: ignore[arg-type]
            return report._replace(verdict=report.verdict._replace(kind="no-fault"))

        monkeypatch.setattr(fromrundir.build, "analyze", nothing)
        verdict = analyze_rundir(writer.path, FAST).verdict
        assert verdict.kind == "stall"
        assert "no kernel at work" in verdict.headline

    def test_xids_heard_live_stand_in_for_a_kernel_log(self, writer: RunWriter) -> None:
        writer.event("xid", attempt=1, code=79, source="nvml")
        (xid,) = analyze_rundir(writer.path, FAST).xid
        assert xid.code == 79
        assert xid.meaning

    def test_of_a_long_output_beginning_end_and_telling_lines_are_read(
        self, writer: RunWriter, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from crashlab.report import fromrundir

        monkeypatch.setattr(fromrundir, "_HEAD", 1000)
        monkeypatch.setattr(fromrundir, "_TAIL", 1000)
        filler = b"filler\n" * 1000
        text = filler + b"END cudaErrorIllegalAddress\n" + filler
        Path(writer.file("output", "001.stdout.log")).write_bytes(text)
        rows = [{"m": n, "s": "stdout", "o": at, "n": 500} for n, at in enumerate(range(0, len(text), 500))]
        Path(writer.file("output", "001.index.jsonl")).write_text("".join(json.dumps(r) + "\n" for r in rows))
        report = analyze_rundir(writer.path, FAST)
        assert report.verdict.kind == "gpu-fault"
        assert any("were not searched" in note for note in report.provenance)

    def test_a_run_folder_that_cannot_be_written_is_analysed_all_the_same(self, writer: RunWriter) -> None:
        Path(writer.file("cores", "c")).write_bytes(dump_bytes("oob_load"))
        before = sorted(os.listdir(writer.path))
        analyze_rundir(writer.path, FAST)
        assert sorted(os.listdir(writer.path)) == before
