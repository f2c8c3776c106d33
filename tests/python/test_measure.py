"""Real runs and calibrations, and Ctrl-C during them."""

import copy
import json
import os
import pickle
import signal
import threading
import time

import pytest

import plumbline

FOUR = "examples/four-stages.yaml"
TWO = {
    "version": 1,
    "name": "two",
    "model": {"uniform": {"layers": 2, "forward": "1 ms", "backward": "2 ms"}},
    "cluster": {"devices": 2},
    "schedule": {"name": "gpipe", "micro_batches": 2},
}


def test_real_runs_stand_beside_their_predictions():
    told = []
    validation = plumbline.validate(
        FOUR, backend="synthetic", schedule=["gpipe", "1f1b"], iterations=3, progress=lambda *numbers: told.append(numbers)
    )
    assert [run.settings for run in validation.runs] == [["schedule.name=gpipe"], ["schedule.name=1f1b"]]
    for run in validation.runs:
        assert run.predicted == 0.033
        assert run.measured is None or run.measured > 0.032
        assert run.verdict in ("SAME", "CLOSE", "OFF", "INCONCLUSIVE")
    assert len(json.loads(validation.json)["points"]) == 2
    assert "gpipe" in str(validation) and validation.verdict in repr(validation)
    assert told[0] == (0, 2) and told[-1] == (1, 2)


def test_several_scenarios_one_of_them_a_dict():
    validation = plumbline.validate((FOUR, TWO), backend="synthetic", iterations=1, warm_up=0)
    assert [run.predicted for run in validation.runs] == [0.033, 0.009]


def test_what_cannot_be_run_is_refused():
    with pytest.raises(plumbline.InputError, match="executes networks|no cpu backend"):
        plumbline.validate(FOUR, backend="cpu")
    with pytest.raises(plumbline.InputError) as caught:
        plumbline.validate(FOUR, backend="gpu")
    assert caught.value.help == "did you mean 'cuda'?"
    with pytest.raises(ValueError, match="iterations is -1"):
        plumbline.validate(FOUR, backend="synthetic", iterations=-1)
    with pytest.raises(TypeError, match="tolerance is a number"):
        plumbline.validate(FOUR, backend="synthetic", tolerance="x")
    with pytest.raises(TypeError, match="backend is a text"):
        plumbline.validate(FOUR, backend=3)
    with pytest.raises(plumbline.FileError, match="nowhere.yaml"):
        plumbline.validate("nowhere.yaml", backend="synthetic")


def test_layers_are_timed(tmp_path):
    with pytest.raises(ValueError, match="'sgd' or 'adam'"):
        plumbline.calibrate("examples/networks/mlp.network.yaml", optimizer="lamb")
    try:
        profile = plumbline.calibrate("examples/networks/mlp.network.yaml", min_seconds=0.2, max_seconds=1)
    except plumbline.NoDeviceError as error:
        pytest.skip(str(error))
    except plumbline.Error as error:
        assert "clean" in str(error)
        pytest.skip("the machine is too busy to measure on")
    assert "kind: profile" in profile.yaml and profile.noise >= 0
    file = tmp_path / "mlp.profile.yaml"
    file.write_text(str(profile))
    run = plumbline.simulate({"version": 1, "name": "mlp", "model": {"profile": str(file)}}, plan__stages=2, cluster__devices=2,
                             schedule={"name": "gpipe", "micro_batches": 2})
    assert run.stages == 2 and run.iteration_time > 0


def interrupted(work):
    """The seconds that the work goes on after Ctrl-C."""
    pressed = []

    def press():
        pressed.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    threading.Timer(0.3, press).start()
    with pytest.raises(KeyboardInterrupt):
        work()
    return time.monotonic() - pressed[0]


def test_real_runs_are_ended_by_ctrl_c():
    assert interrupted(lambda: plumbline.validate(TWO, backend="synthetic", iterations=100_000)) < 20


def test_a_search_for_an_order_is_ended_by_ctrl_c():
    work = lambda: plumbline.find_order("examples/best-order.yaml", schedule__effort=1000, schedule__micro_batches=64)  # noqa: E731
    assert interrupted(work) < 20


def test_what_cannot_be_pickled_says_what_can():
    run = plumbline.simulate(FOUR)
    with pytest.raises(TypeError, match="to_dict"):
        pickle.dumps(run)
    with pytest.raises(TypeError, match="to_frame"):
        pickle.dumps(plumbline.sweep(FOUR, schedule=["gpipe", "1f1b"]))
    assert copy.copy(run) is run and copy.deepcopy([run])[0] is run
