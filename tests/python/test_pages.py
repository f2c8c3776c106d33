"""What the pages show in Python runs, and says what they say."""

import doctest
import re
from pathlib import Path

import pytest

import plumbline

BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page):
    return BLOCK.findall(Path(page).read_text(encoding="utf-8"))


def test_the_page_on_python():
    text = "\n".join(blocks("docs/how-to/python.md"))
    example = doctest.DocTestParser().get_doctest(text, {}, "docs/how-to/python.md", "docs/how-to/python.md", 0)
    assert len(example.examples) > 15
    runner = doctest.DocTestRunner(optionflags=doctest.REPORT_ONLY_FIRST_FAILURE)
    told = []
    runner.run(example, out=told.append)
    assert runner.failures == 0, "".join(told)


def test_the_readme(capsys):
    (block,) = blocks("README.md")
    names = {}
    exec(block, names)  # it is ours
    assert capsys.readouterr().out.startswith("0.033 0.27")
    assert len(names["rows"]) == 3


@pytest.mark.parametrize("module", [plumbline, plumbline.order])
def test_docstrings(module):
    assert doctest.testmod(module).failed == 0
