"""Runs notebooks with and without Jupyter, and compares their outputs as text.

Without it, each cell runs in turn in this process. With PLUMBLINE_UPDATE_GOLDEN=1 those outputs are written into the
notebook; look at the difference before you commit it.
"""

import ast
import contextlib
import io
import json
import sys
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


def texts(cell):
    """What a code cell shows as text: what it prints, and its value."""
    printed = "".join("".join(one["text"]) for one in cell["outputs"] if one["output_type"] == "stream" and one["name"] == "stdout")
    values = ["".join(one["data"]["text/plain"]) for one in cell["outputs"] if one["output_type"] == "execute_result"]
    return printed, values


def execute(notebook):
    """Lets Jupyter run the cells with this Python, whatever the machine's kernels are."""
    from jupyter_client.manager import AsyncKernelManager
    from nbclient import NotebookClient

    class OfThisPython(AsyncKernelManager):
        def format_kernel_cmd(self, extra_arguments=None):
            command = super().format_kernel_cmd(extra_arguments)
            return [sys.executable, *command[1:]]

    NotebookClient(notebook, timeout=120, kernel_manager_class=OfThisPython, kernel_name="python3").execute()


def why_no_jupyter():
    """Why no kernel starts here; "" if one does."""
    try:
        import ipykernel  # noqa: F401
        import nbformat

        execute(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1 + 1")]))
    except Exception as error:
        return f"Jupyter starts no kernel here (packages python3-nbclient, python3-ipykernel): {error}"
    return ""


def run_in_jupyter(path):
    """The cells after Jupyter has run them, and those of the file: (kept, made) of each code cell."""
    import nbformat

    kept = nbformat.read(path, as_version=4)
    made = nbformat.read(path, as_version=4)
    execute(made)
    return [(texts(a), texts(b)) for a, b in zip(kept.cells, made.cells) if a.cell_type == "code"]
