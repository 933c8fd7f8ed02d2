#!/usr/bin/env python3
"""Disturbs runs of split, merge and reshard at random, resumes them, and compares the bytes.

    chaos.py SHARDTOOL FAILING_CALLS [--minutes M] [--seed S] [--round N] [--keep]

Each round takes a random job (verb, mesh, ranks, threads, memory, number of processes), disturbs it
one to three times, goes on with --resume and ends with an undisturbed run. A disturbance is a signal
at a random moment, a system call that fails once (FAILING_CALLS is the library of
failing_calls.cc), a source that is replaced, edited or touched, or a damaged leftover. After every
run, whatever stands under the output's name must be, byte for byte, an undisturbed run's output of
one of the versions that the source had; the last run must succeed. Prints the seed, the counts and
"N wrong"; exits with 1 when something was wrong. `--seed S --round N` repeats one round.
"""

import argparse
import collections
import errno
import hashlib
import json
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

# More than the 64 MiB below which a run that fails keeps nothing.
LARGE, SMALL = 12, 8  # tensors of each kind
COLUMNS = 4096
TIMEOUT = 60  # seconds after which a run counts as hung
GRACE = 3  # seconds after which a launcher ends the other processes, when one has failed

MAPPING = {
    "version": 1,
    "mesh": [{"axis": "tp", "size": 2}],
    "axes": {
        "padded": {"mesh": "tp", "uneven": "pad", "pad_to": 8, "padding": "repeat_last"},
        "zeroed": {"mesh": "tp", "uneven": "pad", "pad_to": 64},
    },
    "rules": [
        {"match": "columns.*", "strategy": "columnwise"},
        {"match": "rows.*", "strategy": "rowwise"},
        {"match": "padded.*", "dims": ["padded", None]},
        {"match": "zeroed.*", "dims": ["zeroed", None]},
        {"match": "norm.*", "strategy": "replicate"},
    ],
}
FAILING = [
    ("pwrite", 200, [errno.EIO, errno.ENOSPC]),
    ("preadv", 200, [errno.EIO]),
    ("fsync", 12, [errno.EIO, errno.ENOSPC]),
    ("fallocate", 8, [errno.ENOSPC]),
    ("ftruncate", 4, [errno.EIO]),
    ("rename", 1, [errno.EIO, errno.ENOSPC]),
    ("mkdir", 1, [errno.EACCES]),
]


def shapes():
    for i in range(LARGE):
        yield f"columns.{i}", "BF16", [900, COLUMNS]
        yield f"rows.{i}", "BF16", [300, COLUMNS]
    for i in range(SMALL):
        yield f"padded.{i}", "BF16", [301, 128]
        yield f"zeroed.{i}", "BF16", [301, 512]
        yield f"norm.{i}", "F32", [77]


def write_checkpoint(folder, seed):
    """Two files and a config. The seed decides the bytes of the first file, and of no other: a
    program that looks at the folder while the files are replaced one by one sees one of two versions."""
    os.mkdir(folder)
    entries = list(shapes())
    index = {}
    for number, part in enumerate((entries[::2], entries[1::2]), 1):
        header, offset = {}, 0
        name = f"model-{number:05}-of-00002.safetensors"
        for tensor, dtype, shape in part:
            size = (2 if dtype == "BF16" else 4)
            for extent in shape:
                size *= extent
            header[tensor] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, offset + size]}
            offset += size
            index[tensor] = name
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        with open(f"{folder}/{name}", "wb") as file:
            file.write(struct.pack("<Q", len(text)) + text + random.Random(seed if number == 1 else -1).randbytes(offset))
    with open(f"{folder}/model.safetensors.index.json", "w") as file:
        json.dump({"metadata": {}, "weight_map": index}, file)
    with open(f"{folder}/config.json", "w") as file:
        json.dump({"model_type": "chaos"}, file)


def content(folder):
    """Names and hashes of everything in a folder; None when there is no folder."""
    if not os.path.isdir(folder):
        return None
    found = {}
    for base, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(base, name)
            if os.path.islink(path):
                return {"a link": path}
            with open(path, "rb") as file:
                found[os.path.relpath(path, folder)] = hashlib.file_digest(file, "sha1").digest()
    return found


class Wrong(Exception):
    """A law was broken."""


class Job:
    """A command without its output, and what an undisturbed run of it writes."""

    def __init__(self, chaos, verb, mesh, ranks, dtype):
        self.chaos, self.verb, self.mesh, self.ranks = chaos, verb, mesh, ranks
        self.dtype = dtype
        self.expected = {}
        self.seconds = 0  # of an undisturbed run

    def words(self, source):
        """The source is a folder of checkpoints: `whole`, and `shards` (two devices)."""
        words = [self.verb, f"{source}/{'whole' if self.verb == 'split' else 'shards'}"]
        if self.verb != "merge":
            words += ["-m", f"{self.chaos.folder}/mapping.json"]
        if self.verb == "split":
            words += ["--mesh", f"tp={self.mesh}"]
        if self.verb == "reshard":
            words += ["--to-mesh", f"tp={self.mesh}"]
            words = [word for word in words if not word.endswith("mapping.json") and word != "-m"]
        if self.dtype:
            words += ["--dtype", self.dtype]
        return words + (["--ranks", self.ranks] if self.ranks else [])

    def output_of(self, version):
        """The content that an undisturbed run of this version of the source writes."""
        if version not in self.expected:
            out = f"{self.chaos.folder}/expected"
            shutil.rmtree(out, ignore_errors=True)
            words = self.words(self.chaos.versions[version]) + ["-o", out, "-q"]
            start = time.monotonic()
            subprocess.run([self.chaos.program, *words], check=True, stdout=subprocess.DEVNULL)
            self.seconds = time.monotonic() - start
            self.expected[version] = content(out)
            shutil.rmtree(out)
        return self.expected[version]


class Chaos:
    def __init__(self, program, library, folder):
        self.program, self.library, self.folder = program, library, folder
        self.counts = collections.Counter()
        self.jobs = {}
        self.versions = []
        with open(f"{folder}/mapping.json", "w") as file:
            json.dump(MAPPING, file)
        for version in (0, 1):
            base = f"{folder}/version{version}"
            os.mkdir(base)
            write_checkpoint(f"{base}/whole", version)
            subprocess.run([program, "split", f"{base}/whole", "-m", f"{folder}/mapping.json",
                            "-o", f"{base}/shards", "-q"], check=True, stdout=subprocess.DEVNULL)
            self.versions.append(base)

    def job(self, choose):
        verb = choose.choice(["split", "split", "merge", "reshard"])
        mesh = 0 if verb == "merge" else choose.choice([2, 3, 4])
        ranks = choose.choice([None, None, "0", "1", "0,1"]) if mesh else None
        dtype = choose.choice([None, None, "f16", "f32"])
        key = (verb, mesh, ranks, dtype)
        if key not in self.jobs:
            self.jobs[key] = Job(self, *key)
        return self.jobs[key]


class Round:
    """One job, disturbed and resumed."""

    def __init__(self, chaos, seed):
        self.chaos, self.counts = chaos, chaos.counts
        self.choose = random.Random(seed)
        self.folder = f"{chaos.folder}/round"
        shutil.rmtree(self.folder, ignore_errors=True)
        os.mkdir(self.folder)
        self.out = f"{self.folder}/out"
        self.job = chaos.job(self.choose)
        self.job.output_of(0)
        self.version = 0
        self.allowed = {0}
        self.was_changed = False
        self.changes_source = self.choose.random() < 0.3
        self.source = self.own_source() if self.changes_source else chaos.versions[0]
        self.log = []

    def own_source(self):
        shutil.copytree(self.chaos.versions[0], f"{self.folder}/source")
        return f"{self.folder}/source"

    # Disturbances

    def fault(self):
        """Variables that make a system call of a process fail, or slow all of them down."""
        variables = {"LD_PRELOAD": self.chaos.library, "CHAOS_SEED": str(self.choose.getrandbits(30))}
        if self.choose.random() < 0.5:
            variables["CHAOS_DELAY"] = str(self.choose.choice([50, 500, 2000]))
        if self.choose.random() < 0.6:
            call, most, errors = self.choose.choice(FAILING[:2] + FAILING)
            number = self.choose.randint(1, most)
            variables["CHAOS_FAIL"] = f"{call}:{number}:{self.choose.choice(errors)}"
            self.counts[f"failing {call}"] += 1
        return variables

    def send_signals(self, processes, sent):
        """Signals some processes at a random moment. Returns whether one may have been hit."""
        time.sleep(self.choose.random() * 1.2 * self.job.seconds)
        if self.changes_source and self.choose.random() < 0.5:
            self.change_source()
        if self.choose.random() < 0.25:
            return
        targets = processes if self.choose.random() < 0.7 else [self.choose.choice(processes)]
        for process in targets:
            if process.poll() is None:
                process.send_signal(sent)
                self.counts[sent.name] += 1

    def change_source(self):
        """Replaces, edits or touches the source, with its modification times kept or not."""
        how = self.choose.choice(["replace", "edit", "edit", "touch"])
        self.log.append(how)
        self.counts[f"source: {how}"] += 1
        kind = "whole" if self.job.verb == "split" else "shards"
        new = 1 - self.version if how != "touch" else self.version
        for name in sorted(os.listdir(f"{self.source}/{kind}")):
            path, other = f"{self.source}/{kind}/{name}", f"{self.chaos.versions[new]}/{kind}/{name}"
            times = os.stat(path)
            if how == "touch":
                os.utime(path)
                continue
            if how == "replace":
                shutil.copyfile(other, path + ".new")
                os.utime(path + ".new", ns=(times.st_atime_ns, times.st_mtime_ns))
                os.rename(path + ".new", path)
                continue
            with open(other, "rb") as file, open(path, "r+b") as edited:
                edited.write(file.read())
                edited.truncate()
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        self.was_changed = True
        self.version = new
        self.allowed.add(new)

    def damage_leftover(self):
        """Changes what an interrupted run left: its files, or its journals. Spares the data of shares
        that have ended: the one that publishes does not read it again."""
        left = [name for name in os.listdir(self.folder) if name.startswith(".out.shardtool-")]
        if any(name.endswith(".share") for name in left):
            return
        paths = []
        for name in left:
            path = f"{self.folder}/{name}"
            paths += [f"{path}/{file}" for file in os.listdir(path)] if os.path.isdir(path) else [path]
        if not paths:
            return
        path = self.choose.choice(sorted(paths))
        how = self.choose.choice(["delete", "empty", "cut", "flip", "append"])
        self.log.append(f"{how} {os.path.basename(path)[-30:]}")
        self.counts[f"leftover: {how}"] += 1
        size = os.path.getsize(path)
        if how == "delete":
            os.remove(path)
        elif how == "empty":
            os.truncate(path, 0)
        elif how == "cut":
            os.truncate(path, self.choose.randint(0, size))
        elif how == "append":
            with open(path, "ab") as file:
                file.write(self.choose.randbytes(100))
        elif size > 0:
            with open(path, "r+b") as file:
                at = self.choose.randrange(size)
                file.seek(at)
                byte = file.read(1)[0]
                file.seek(at)
                file.write(bytes([byte ^ (1 << self.choose.randrange(8))]))

    # Runs

    def start(self, flags, variables, size):
        """The processes of one launch, each a share of the run."""
        words = self.job.words(self.source) + ["-o", self.out, "-q", *flags]
        self.log.append(f"{size}x {' '.join(flags)} {variables.get('CHAOS_FAIL', '')}")
        processes = []
        faulty = self.choose.randrange(size)
        for rank in range(size):
            environment = dict(os.environ)
            if rank == faulty:
                environment.update(variables)
            if size > 1:
                environment.update(OMPI_COMM_WORLD_RANK=str(rank), OMPI_COMM_WORLD_SIZE=str(size),
                                   PMIX_NAMESPACE=f"chaos-{self.counts['runs']}")
            processes.append(subprocess.Popen([self.chaos.program, *words], env=environment,
                                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE))
        self.counts["runs"] += 1
        return processes

    def finish(self, processes):
        """Exit statuses and what was said on standard error."""
        end = time.monotonic() + TIMEOUT
        while None in (statuses := [process.poll() for process in processes]):
            if any(statuses):
                self.end_others(processes)
            if time.monotonic() > end:
                for process in processes:
                    process.kill()
                raise Wrong("a process hangs")
            time.sleep(0.005)
        errors = []
        for process in processes:
            errors.append(process.stderr.read().decode(errors="replace"))
            process.stderr.close()
        return [process.returncode for process in processes], "".join(errors)

    @staticmethod
    def end_others(processes):
        """Ends processes as a launcher does after one has failed: wait, terminate, wait, kill."""
        for end in (subprocess.Popen.terminate, subprocess.Popen.kill):
            until = time.monotonic() + GRACE
            while time.monotonic() < until and any(process.poll() is None for process in processes):
                time.sleep(0.005)
            for process in processes:
                if process.poll() is None:
                    end(process)
        for process in processes:
            process.wait()

    def flags(self):
        flags = ["--threads", str(self.choose.choice([1, 2, 3, 4, 8])),
                 "--max-memory", self.choose.choice(["4MiB", "8MiB", "64MiB"])]
        return flags + ["--io", self.choose.choice(["auto", "auto", "buffered"])]

    def check_published(self, statuses, error):
        """Whatever stands under the output's name is one of the allowed outputs."""
        found = content(self.out)
        if any(status in (70, -signal.SIGSEGV, -signal.SIGABRT) for status in statuses):
            raise Wrong(f"statuses {statuses}: {error}")
        if found is None:
            if not any(statuses):
                raise Wrong("exit statuses 0, and there is no output")
            return False
        if not any(found == self.job.output_of(version) for version in self.allowed):
            different = [sorted(name for name in found.keys() | expected.keys()
                                if found.get(name) != expected.get(name))
                         for expected in map(self.job.output_of, self.allowed)]
            raise Wrong(f"wrong bytes were published, statuses {statuses}; "
                        f"these differ: {' or '.join(map(str, different))}: {error}")
        return True

    def disturb(self, resumes):
        size = self.choose.choice([1, 1, 1, 2, 3])
        processes = self.start(self.flags() + (["--resume"] if resumes else []), self.fault(), size)
        sent = self.choose.choice([signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
        self.send_signals(processes, sent)
        statuses, error = self.finish(processes)
        self.log.append(f"statuses {statuses}")
        self.counts["disturbed"] += 1
        if any(statuses):
            self.counts["interrupted"] += 1
        return self.check_published(statuses, error)

    def resume(self):
        """Goes on undisturbed; begins anew where the source or the leftover does not allow it."""
        statuses, error = self.finish(self.start(self.flags() + ["--resume"], {}, 1))
        self.log.append(f"resumed {statuses}")
        if statuses != [0] and self.was_changed and "E0312" in error:
            self.counts["refused to resume"] += 1
            statuses, error = self.finish(self.start(self.flags(), {}, 1))
        if statuses != [0]:
            raise Wrong(f"the last run fails: {error}")
        self.counts["resumed"] += 1
        self.check_published(statuses, error)

    def play(self):
        published = False
        for attempt in range(self.choose.randint(1, 3)):
            published = self.disturb(attempt > 0)
            if published:
                break
            if self.choose.random() < 0.2:
                self.damage_leftover()
        if not published:
            # Tensors that runs of earlier versions finished must not be in the output.
            self.allowed.add(self.version)
            self.resume()
        hidden = [name for name in os.listdir(self.folder) if name.startswith(".out") and ".meeting" not in name]
        if hidden and not published:
            raise Wrong(f"left behind: {hidden}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("library")
    parser.add_argument("--minutes", type=float, default=1)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().getrandbits(32))
    parser.add_argument("--round", type=int)
    parser.add_argument("--keep", action="store_true", help="keep the folder of a round that is wrong")
    arguments = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="shardtool-chaos-")
    print(f"seed {arguments.seed}", flush=True)
    wrong = 0
    try:
        chaos = Chaos(os.path.abspath(arguments.program), os.path.abspath(arguments.library), folder)
        rounds = 0
        end = time.monotonic() + 60 * arguments.minutes
        while time.monotonic() < end:
            number = rounds if arguments.round is None else arguments.round
            played = Round(chaos, f"{arguments.seed} {number}")
            try:
                played.play()
            except Wrong as problem:
                wrong += 1
                print(f"WRONG in round {number} ({played.job.verb} tp={played.job.mesh} "
                      f"--ranks {played.job.ranks}): {problem}\n  " + "\n  ".join(played.log), flush=True)
                if arguments.keep:
                    shutil.copytree(played.folder, f"{folder}-round-{number}", symlinks=True)
                    print(f"  kept in {folder}-round-{number}", flush=True)
            rounds += 1
            if arguments.round is not None:
                break
        for what, count in sorted(chaos.counts.items()):
            print(f"{count:8} {what}")
        print(f"{rounds:8} rounds\n{wrong:8} wrong")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
