"""The plugin for MPI that the wheel holds, with the library of the extra `mpi`."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import SAMPLE

import shardtool as st

PLUGIN = Path(sys.prefix) / "lib" / "shardtool" / "libshardtool_mpi.so"
MPIRUN = Path(sys.prefix) / "bin" / "mpirun"


def test_processes_of_mpirun_speak_mpi(tmp_path, program):
    if not PLUGIN.exists():
        pytest.skip("the wheel was built without MPI")
    if not MPIRUN.exists():
        pytest.skip("the extra mpi is not installed")
    st.split(SAMPLE, tmp_path / "tp2", mesh={"tp": 2})
    # mpirun gives its processes a terminal.
    environment = os.environ | {"NO_COLOR": "1", "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    command = [program, "validate", tmp_path / "tp2", "-r", SAMPLE, "--quick", "--engine", "mpi"]
    run = subprocess.run([MPIRUN, "--oversubscribe", "-n", "2", *command], env=environment, capture_output=True, text=True,
                         timeout=120)
    assert run.returncode == 0, run.stdout + run.stderr
    alone = subprocess.run(command[:-2], capture_output=True, text=True, check=True).stdout
    digest = next(line for line in alone.splitlines() if line.startswith("digest"))
    assert digest in run.stdout.splitlines()
