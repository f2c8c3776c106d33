"""Sweeps and searches: rows, frames, progress, interruption."""

import os
import signal
import threading
import time

import pytest

import plumbline

FOUR = "examples/four-stages.yaml"


def test_a_sweep_has_rows_columns_and_settings():
    rows = plumbline.sweep(FOUR, schedule=["gpipe", "1f1b"], schedule__micro_batches=range(4, 17, 4))
    assert len(rows) == rows.done == 8
    assert rows[0]["schedule.micro_batches"] == 16
    assert rows.unit("iteration_time_s") == "s"
    assert rows.column("schedule.micro_batches") == sorted(rows.column("schedule.micro_batches"), reverse=True)
    for i, row in enumerate(rows):
        assert plumbline.simulate(FOUR, *rows.settings(i)).iteration_time == row["iteration_time_s"]
    assert rows[-1]["schedule.micro_batches"] == 4
    with pytest.raises(IndexError):
        rows[8]
    with pytest.raises(IndexError):
        rows.settings(8)


def test_lists_within_lists():
    rows = plumbline.sweep(FOUR, plan__partition=[[1, 1, 1, 1], [2, 1, 1]], plan__stages=None, cluster__devices=4)
    assert len(rows) == 2
    assert {rows.settings(0)[0], rows.settings(1)[0]} == {"plan.partition=[1, 1, 1, 1]", "plan.partition=[2, 1, 1]"}


def test_frames_and_reasons():
    rows = plumbline.sweep(FOUR, schedule=["gpipe", "1f1b"], cluster__memory="300 MiB")
    frame = rows.to_frame()
    assert frame.fits.tolist() == [True, False]
    assert frame["schedule.name"].tolist() == ["1f1b", "gpipe"]
    assert frame.peak_memory_bytes.dtype == "int64"
    assert frame.reason[0] == "" and "device" in frame.reason[1]
    assert rows._repr_html_().startswith("<iframe")
    assert "1f1b" in str(rows)


def test_the_command_has_the_same_rows(command_json):
    rows = plumbline.sweep(FOUR, schedule=["gpipe", "1f1b", "zb-h1"], objective="memory", top=2)
    said = command_json("sweep", FOUR, "schedule.name=gpipe,1f1b,zb-h1", "--objective", "memory", "--top", "2")
    assert [row["iteration_time_s"] for row in said["rows"]] == rows.column("iteration_time_s")
    assert [row["peak_memory_bytes"] for row in said["rows"]] == rows.column("peak_memory_bytes")


def test_conditions_and_their_errors():
    rows = plumbline.sweep(FOUR, schedule__micro_batches=[4, 8, 16], where=["schedule.micro_batches < 10"])
    assert sorted(rows.column("schedule.micro_batches")) == [4, 8]
    with pytest.raises(plumbline.InputError, match="objective"):
        plumbline.sweep(FOUR, schedule__micro_batches=[4, 8], objective="speed")
    with pytest.raises(ValueError, match="empty list"):
        plumbline.sweep(FOUR, schedule__micro_batches=[])


def test_a_search():
    rows = plumbline.search("examples/layouts.yaml")
    assert len(rows) == 3
    best = plumbline.simulate("examples/layouts.yaml", *rows.settings(0))
    assert best.iteration_time == rows[0]["iteration_time_s"]
    assert best.likely_iteration_time[0] < best.iteration_time < best.likely_iteration_time[1]
    assert rows.remarks


def test_progress_is_told():
    told = []
    plumbline.sweep(FOUR, schedule__micro_batches=range(1, 200), progress=lambda done, count: told.append((done, count)))
    assert told[-1] == (199, 199)
    assert told == sorted(told)


def test_an_error_in_progress_stops_the_work():
    def fails(done, count):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        plumbline.sweep(FOUR, schedule__micro_batches=range(1, 20000), schedule=["gpipe", "1f1b"], progress=fails)


def test_it_can_be_interrupted():
    threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        plumbline.sweep(FOUR, schedule__micro_batches=range(1, 4000), schedule=["gpipe", "1f1b", "zb-h1"])
    assert time.monotonic() - begin < 30


def test_other_threads_work_meanwhile():
    counted = 0
    ended = threading.Event()

    def count():
        nonlocal counted
        while not ended.is_set():
            counted += 1
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    try:
        plumbline.sweep(FOUR, schedule__micro_batches=range(1, 400), threads=1)
    finally:
        ended.set()
        thread.join()
    assert counted > 3


def test_values_with_quotes_and_commas_stay_apart():
    names = ["it's", "z", "don't, please", "[a]", 'b "c"']
    rows = plumbline.sweep(FOUR, name=names)
    assert len(rows) == 5
    assert {plumbline.simulate(FOUR, *rows.settings(i)).name for i in range(5)} == set(names)
    assert "don't, please" in rows["name"]


def test_orders_in_a_sweep():
    two = {"version": 1, "name": "two", "model": {"uniform": {"layers": 2, "forward": "1 ms", "backward": "2 ms"}}, "cluster": {"devices": 2}}
    orders = [plumbline.Order([["0F0", "0B0"], ["1F0", "1B0"]]), plumbline.Order([["0F0", "0F1", "0B0", "0B1"], ["1F0", "1B0", "1F1", "1B1"]])]
    rows = plumbline.sweep(two, schedule=orders)
    del orders
    for i, row in enumerate(rows):
        assert plumbline.simulate(two, *rows.settings(i)).iteration_time == row["iteration_time_s"]
    with pytest.raises(TypeError, match="names and orders"):
        plumbline.sweep(two, schedule=["gpipe", plumbline.Order([["0F0", "0B0"], ["1F0", "1B0"]])])


def test_rows_that_cannot_run_keep_their_columns():
    rows = plumbline.sweep(FOUR, schedule__micro_batches=[4.0, 8.0])
    assert rows.to_frame().iteration_time_s.notna().all()
    bad = plumbline.sweep(FOUR, schedule=["gpipe", "1f1b"], cluster__memory="1 MiB")
    assert "2 of them do not fit" in repr(bad)
    none = plumbline.sweep(FOUR, schedule=["gpipe", "1f1b"], where="iteration_time_s < 1 ns")
    assert len(none) == 0 and "iteration_time_s" in none.columns and none.to_frame().empty


def test_a_range_that_is_too_long_is_refused_at_once():
    with pytest.raises(plumbline.InputError, match="999999999 numbers"):
        plumbline.sweep(FOUR, schedule__micro_batches=range(1, 10**9))


def test_rows_as_a_container():
    rows = plumbline.sweep(FOUR, schedule=["gpipe", "1f1b"])
    assert rows["schedule.name"] == ["1f1b", "gpipe"]
    assert [row["schedule.name"] for row in rows[:1]] == ["1f1b"]
    with pytest.raises(IndexError):
        rows.settings(-3)
    for wrong in ({"top": 2.5}, {"threads": None}, {"progress": "x"}):
        with pytest.raises(TypeError):
            plumbline.sweep(FOUR, schedule=["gpipe", "1f1b"], **wrong)
