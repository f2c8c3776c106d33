"""Runs notebooks without Jupyter: each cell in turn, and what it prints or ends in as text.

With PLUMBLINE_UPDATE_GOLDEN=1 the outputs are written into the notebook; look at the difference before you commit it.
"""

import ast
import contextlib
import io
import json
from pathlib import Path


def output_of(source, names):
    """What a cell prints, and the value of its last line as text."""
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "<cell>", "exec"), names)
        value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), names) if last else None
    outputs = []
    if printed.getvalue():
        outputs.append({"name": "stdout", "output_type": "stream", "text": printed.getvalue().splitlines(keepends=True)})
    if value is not None:
        outputs.append({"data": {"text/plain": repr(value).splitlines(keepends=True)}, "metadata": {}, "output_type": "execute_result"})
    return outputs


def run(path, update=False):
    """The differences between the outputs that a notebook has and those that it makes: (cell, kept, made)."""
    notebook = json.loads(Path(path).read_text(encoding="utf-8"))
    names, differences, number = {}, [], 0
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            continue
        number += 1
        made = output_of("".join(cell["source"]), names)
        kept = [{key: value for key, value in one.items() if key != "execution_count"} for one in cell["outputs"]]
        if made != kept:
            differences.append((number, kept, made))
        cell["execution_count"] = number
        cell["outputs"] = [
            {**one, "execution_count": number} if one["output_type"] == "execute_result" else one for one in made
        ]
    if update:
        text = json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True) + "\n"
        Path(path).write_text(text, encoding="utf-8")
    return differences
