"""Runs the ranks of a load as processes forked from this one, which has imported the engine for all loads.

To import an engine costs 10 to 20 seconds of a core, to load a small model a quarter of one. A rank is still a process of its
own: this one builds no model and joins no process group, so what a load leaves in memory ends with its ranks. A fork copies
only the thread that calls it, so there must be no other: the engines start threads in the ranks alone.
"""
import json
import multiprocessing
import multiprocessing.connection
import os
import pathlib
import sys
import tempfile
import time
import traceback

LIMIT_SECONDS = 600


def run_rank(task, rank, folder):
    """Writes what the task returns to RESULT.RANK and what it prints to LOG.RANK, and ends the process."""
    with open(folder / f"log.{rank}", "w") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    status = 1
    try:
        text = json.dumps(task(folder, rank))
        (folder / f"result.{rank}").write_text(text)
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(status)  # to leave the process group in order, a rank would wait for the others


def wait_for_all(processes):
    """Waits for every rank. When one fails, or after ten minutes, ends the others: they would wait for it."""
    end = time.monotonic() + LIMIT_SECONDS
    while running := [process.sentinel for process in processes if process.exitcode is None]:
        if any(process.exitcode for process in processes) or time.monotonic() > end:
            for process in processes:
                process.kill()
        multiprocessing.connection.wait(running, timeout=1)


def results(task, ranks):
    """Returns the values of task(folder, rank) of every rank, or raises with the last lines of the ranks that failed.

    The folder is empty, the same for all ranks, and its name is unique on the machine. The values have to fit into JSON.
    """
    threads = len(os.listdir("/proc/self/task"))
    if threads != 1:
        raise RuntimeError(f"cannot fork a process with {threads} threads")
    with tempfile.TemporaryDirectory(prefix="shardtool-") as name:
        folder = pathlib.Path(name)
        fork = multiprocessing.get_context("fork")
        processes = [fork.Process(target=run_rank, args=(task, rank, folder)) for rank in range(ranks)]
        for process in processes:
            process.start()
        try:
            wait_for_all(processes)
        finally:
            remove_shared_memory(folder.name)
        files = [folder / f"result.{rank}" for rank in range(ranks)]
        failed = [rank for rank in range(ranks) if processes[rank].exitcode or not files[rank].exists()]
        if failed:
            raise RuntimeError("\n".join("\n".join([f"rank {rank} ended with status {processes[rank].exitcode}",
                                                   *last_lines(folder / f"log.{rank}")]) for rank in failed))
        return [json.loads(file.read_text()) for file in files]


def remove_shared_memory(name):
    """Removes what vLLM names after the folder: it keeps its shared memory, and refuses what is there."""
    for left in pathlib.Path("/dev/shm").glob(f"{name}-*"):
        left.unlink()


def last_lines(path):
    return path.read_text(errors="replace").splitlines()[-12:] if path.exists() else []
