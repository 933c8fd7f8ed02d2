#!/usr/bin/env python3
"""Splits, merges or reshards in shares, each a task of Ray.

    ray_split.py N split SRC -o OUT --tp 8

SRC and OUT are in folders that every machine of the cluster sees. A share that fails runs again
alone; the one that ends last publishes OUT.
"""

import subprocess
import sys

import ray


@ray.remote(num_cpus=4, max_retries=3, retry_exceptions=True)
def move_share(number, count, words):
    subprocess.run(["shardtool", "-q", *words, "--share", f"{number}/{count}"], check=True)


def main():
    count, words = int(sys.argv[1]), sys.argv[2:]
    ray.init(address="auto", ignore_reinit_error=True)
    ray.get([move_share.remote(number, count, words) for number in range(count)])
    output = words[words.index("-o") + 1]
    subprocess.run(["shardtool", "finish", output], check=True)


if __name__ == "__main__":
    main()
