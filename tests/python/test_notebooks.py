"""The notebooks of examples/notebooks show what they make, are small, and are whole."""

import json
import os
from pathlib import Path

import pytest

from notebooks import run, run_in_jupyter, why_no_jupyter

NOTEBOOKS = sorted(Path("examples/notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_outputs(path):
    differences = run(path, update=os.environ.get("PLUMBLINE_UPDATE_GOLDEN") == "1")
    for number, kept, made in differences:
        print(f"cell {number} has {kept}, and makes {made}")
    assert not differences


@pytest.fixture(scope="module")
def jupyter():
    missing = why_no_jupyter()
    if missing:
        pytest.skip(missing)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_in_jupyter(path, jupyter):
    for kept, made in run_in_jupyter(path):
        assert made == kept


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_is_small_and_says_what_it_is(path):
    notebook = json.loads(path.read_text(encoding="utf-8"))
    assert path.stat().st_size < 30_000
    assert notebook["cells"][0]["source"][0].startswith("# ")
    assert notebook["nbformat"] == 4
    ids = [cell["id"] for cell in notebook["cells"]]
    assert len(set(ids)) == len(ids)


def test_there_are_three():
    assert len(NOTEBOOKS) == 3
