#!/usr/bin/env python3
"""Compares the throughput that `shardtool plan search` says with tables that NVIDIA publishes.

    published.py SHARDTOOL               one line per row, and the median of each kind
    --markdown       print tables in Markdown: rows of one model, form and layout together
    --only NAME      offline or training
    --models A,B     rows of these models alone
    --limits FILE    fail if a row has no price, or a median is outside of what a JSON file says

offline.csv: TensorRT-LLM docs/source/developer-guide/perf-overview.md (commit 03e27c7d5ff0), output tokens per second and
GPU of trtllm-bench with all requests queued at once. As many run as caches hold. `dep` is attention data parallelism with
whole experts on each device. The page says neither the type of the cache for Qwen 3 and Llama (here fp8, as ModelOpt's
checkpoints say) nor the batch that the program chose.

training.csv: Megatron-Bridge docs/performance-summary.md, tokens per second and GPU: release 25.11 (commit 00b7660be025),
and of 26.04.01, 26.06 and 26.08 the newest row of every model and system (commit 067f987df03b; docs/
performance-summary-archive.md). FP8 recipes are priced by a checkpoint in FP8 (per tensor, or in blocks for MXFP8): products
at its rate, states of training as ever. FSDP is ZeRO 3, other rows have the distributed optimizer, ZeRO 1. Left out:
context parallelism, NVFP4, MXFP8 of gpt-oss, which no checkpoint has, Qwen3-235B on H100, whose tensor-parallel devices
hold whole experts, and B300, which has no profile. Rows with vp=8 and pp=16 have two virtual stages that are an end of
the model alone; every virtual stage here has a layer, so they are priced with vp=4.
"""

import argparse
import collections
import csv
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

import headers

FOLDER = pathlib.Path(__file__).parent
MEMORY_FRACTION = '0.95'  # --kv_cache_free_gpu_mem_fraction of the page, of all memory here
DENSE = ('Llama-3.1-8B', 'Llama-3.1-70B', 'Llama-3.1-405B')


def offline_flags(row):
    flags = ['--devices', int(row['tp']) * int(row['pp']) * int(row['dep']), '--tp', row['tp'], '--pp', row['pp'],
             '--ep', row['dep'], '--prompt-len', row['prompt'], '--output-len', row['answer'],
             '--concurrency', row['requests'], '--kv-dtype', row['cache'], '--memory-fraction', MEMORY_FRACTION]
    return flags


def training_flags(row):
    flags = ['--train', '--devices', row['devices'], '--tp', row['tp'], '--pp', row['pp'], '--ep', row['ep'],
             '--batch', row['batch'], '--micro-batch', row['micro_batch'], '--sequence', row['sequence'],
             '--zero', row['zero'], '--sequence-parallel']
    if row['pp'] == '16' and row['vp'] == '8':
        return flags + ['--virtual-stages', '4']
    return flags if row['vp'] == '1' else flags + ['--virtual-stages', row['vp']]


KINDS = {'offline': offline_flags, 'training': training_flags}


def price(program, folder, flags, row):
    """Returns the tokens per second and device that the program says, and how, or a refusal."""
    command = [program, 'plan', 'search', folder, '--profile', row['system'], '--straddle', 'uneven-aligned',
               '--exit-zero', '--json'] + list(map(str, flags))
    document = json.loads(subprocess.run(command, capture_output=True, text=True).stdout)
    if 'error' in document:
        return None, document['error']['message']
    found = [each for each in document['rows'] if not each['expert_parallel']]
    if not found:
        return None, '; '.join(sorted({refused['reason'] for refused in document['refused']}))
    best = max(found, key=lambda each: each['tokens_per_s_per_device'])
    return best['tokens_per_s_per_device'], best


def read(kind, models):
    with open(FOLDER / f'{kind}.csv', newline='') as file:
        return [row for row in csv.DictReader(file) if not models or row['model'] in models]


def priced(program, kind, models):
    rows = read(kind, models)
    held = None
    with tempfile.TemporaryDirectory() as folder:
        for row in sorted(rows, key=lambda row: (row['model'], row['weights'])):
            if held != (row['model'], row['weights']):
                held = (row['model'], row['weights'])
                headers.write_model(*held, folder)
            row['said'], row['how'] = price(program, folder, KINDS[kind](row), row)
            row['ratio'] = row['said'] / float(row['tokens_per_s']) if row['said'] else None
    return rows


def layout_of(row):
    sizes = [(axis, row.get(axis, '1')) for axis in ('tp', 'pp', 'vp', 'dep', 'ep')]
    return ' '.join(f'{axis}={size}' for axis, size in sizes if size != '1') or 'tp=1'


def print_markdown(kind, rows):
    if kind == 'training':
        print('| release | model | weights | system | devices | layout | measured | modelled | ratio |')
        print('|---' * 9 + '|')
        for row in rows:
            said = f"{row['said']:.0f} | {row['ratio']:.2f}" if row['said'] else f"- | {row['how']}"
            print('|', ' | '.join(row[name] for name in ('release', 'model', 'weights', 'system', 'devices')),
                  f"| {layout_of(row)} | {row['tokens_per_s']} | {said} |")
        return
    lengths = list(dict.fromkeys(f"{row['prompt']}/{row['answer']}" for row in rows))
    table = collections.defaultdict(dict)
    for row in rows:
        key = (row['model'], row['weights'], row['system'], layout_of(row))
        table[key][f"{row['prompt']}/{row['answer']}"] = row
    print('| model | weights | system | layout |', ' | '.join(lengths), '|')
    print('|---' * (4 + len(lengths)) + '|')
    for key, cells in table.items():
        ratios = [f"{cells[at]['ratio']:.2f}" if at in cells and cells[at]['ratio'] else '-' for at in lengths]
        print('|', ' | '.join(key), '|', ' | '.join(ratios), '|')


def medians(kind, rows):
    """Returns the median ratio by kind of layout, with the number of its rows."""
    groups = collections.defaultdict(list)
    for row in rows:
        if row['ratio'] is None:
            continue
        groups[kind].append(row['ratio'])
        part = 'dense' if row['model'] in DENSE else 'experts'
        groups[f'{kind}, {part}'].append(row['ratio'])
        if 'release' in row:
            groups[f"{kind} {row['release'][:2]}, {part}"].append(row['ratio'])
        if row['pp'] != '1':
            groups[f'{kind}, stages'].append(row['ratio'])
        if row.get('dep', row.get('ep')) != '1':
            groups[f'{kind}, own sequences'].append(row['ratio'])
    return {name: (statistics.median(ratios), statistics.median(abs(ratio - 1) for ratio in ratios), len(ratios))
            for name, ratios in groups.items()}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('program')
    parser.add_argument('--markdown', action='store_true')
    parser.add_argument('--only', choices=KINDS)
    parser.add_argument('--models', type=lambda text: text.split(','))
    parser.add_argument('--limits')
    args = parser.parse_args()
    found, broken = {}, []
    for kind in [args.only] if args.only else KINDS:
        rows = priced(args.program, kind, args.models)
        found |= medians(kind, rows)
        broken += [f"{row['model']} on {row['system']}, {layout_of(row)}: {row['how']}" for row in rows if not row['said']]
        if args.markdown:
            print_markdown(kind, rows)
        else:
            for row in rows:
                said = f"{row['said']:.0f} {row['ratio']:.2f}" if row['said'] else row['how']
                print(kind, row['model'], row['weights'], row['system'], layout_of(row),
                      f"{row.get('prompt', row.get('sequence'))}/{row.get('answer', '')}", row['tokens_per_s'], said)
    for name, (ratio, error, count) in found.items():
        print(f'{name}: median of modelled / measured {ratio:.2f}, median error {100 * error:.0f} %, {count} rows')
    if args.limits:
        limits = json.load(open(args.limits))
        broken += [f'{name}: the median is {found[name][0]:.2f}, and {least} to {most} is allowed'
                   for name, (least, most) in limits.items() if not least <= found[name][0] <= most]
        for line in broken:
            print(line, file=sys.stderr)
    return 1 if args.limits and broken else 0


if __name__ == '__main__':
    sys.exit(main())
