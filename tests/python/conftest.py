"""What the tests share. They run in the root of the repository."""

import json
import os
import subprocess

import pytest


@pytest.fixture
def command_json():
    """The command's JSON; PLUMBLINE names the command."""
    command = os.environ.get("PLUMBLINE")
    if not command:
        pytest.skip("the variable PLUMBLINE names no command to compare with")

    def run(*arguments):
        done = subprocess.run([command, *arguments, "--json"], capture_output=True, text=True, check=False)
        assert done.returncode in (0, 4), done.stderr
        return json.loads(done.stdout)

    return run
