"""Fixtures: the sample checkpoint, outputs of it, and the files as safetensors reads them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import shardtool as st

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "samples" / "tiny-llama"


@pytest.fixture
def sample():
    return SAMPLE


@pytest.fixture(scope="session")
def outputs(tmp_path_factory):
    """Path of a split of the sample over a mesh, made once."""
    made = {}

    def output(mesh, layout="plain"):
        key = (tuple(mesh.items()), layout)
        if key not in made:
            made[key] = tmp_path_factory.mktemp("split") / "out"
            st.split(SAMPLE, made[key], mesh=mesh, layout=layout)
        return made[key]

    return output


@pytest.fixture
def program():
    """The program that the wheel installed."""
    path = Path(sys.executable).parent / "shardtool"
    assert path.exists(), "the wheel has put no program beside its Python"
    return path


def bytes_read():
    """Bytes that this process has asked the system to read so far."""
    text = Path("/proc/self/io").read_text()
    return int(next(line.split()[1] for line in text.splitlines() if line.startswith("rchar")))


def documents_of(program, *command):
    """What the program prints with --json, without what two runs have of their own."""
    run = subprocess.run([program, *command, "--json"], capture_output=True, text=True)
    return without_measures(json.loads(run.stdout))


def without_measures(report):
    return {name: value for name, value in report.items() if name not in ("seconds", "bytes_read")}
