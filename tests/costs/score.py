#!/usr/bin/env python3
"""Compares the times of `shardtool plan search` with measured ones.

    score.py SHARDTOOL anchors.csv            the 35 rows that are kept here
    score.py SHARDTOOL silicon_sample.csv     the whole table of ai-dynamo/aiconfigurator
    --limits FILE    fail if a measure is above the limit that a JSON file sets

Rows of a closed loop: `concurrency` clients, prompts and answers of fixed length, one pool of tp devices.
Left out: repeated measurements, layouts that cannot be, runs in progress, other batches than the clients, models
with a multi-token head, attention data parallelism, and systems without a profile. A row is starved if the cache
lacks places for its clients; those are counted apart. So are groups in which a tenth of the rows is faster than the
hardware: less time per answer than its share of all products at the peak rates plus all reads at full bandwidth. Their
prompts were most likely cached.
"""
import argparse
import collections
import csv
import json
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

import headers

MODELS = {
    'meta-llama/Llama-3.1-70B': 'Llama-3.1-70B', 'meta-llama/Llama-3.1-8B-Instruct': 'Llama-3.1-8B',
    'nvidia/Llama-3.1-8B-Instruct-FP8': 'Llama-3.1-8B', 'Qwen/Qwen3-32B': 'Qwen3-32B',
    'nvidia/Qwen3-32B-NVFP4': 'Qwen3-32B', 'Qwen/Qwen3-235B-A22B-FP8': 'Qwen3-235B',
    'MiniMaxAI/MiniMax-M2.5': 'MiniMax-M2.5', 'openai/gpt-oss-120b': 'gpt-oss-120b',
    'moonshotai/Kimi-K2.5': 'Kimi-K2.5', 'Llama-3.1-8B-Instruct': 'Llama-3.1-8B',
    'Qwen3-235B-A22B-FP8': 'Qwen3-235B'}
DENSE = ('Llama-3.1-70B', 'Llama-3.1-8B', 'Qwen3-32B')
PROFILES = {'h100_sxm': 'h100-sxm', 'h200_sxm': 'h200-sxm', 'b200_sxm': 'b200-sxm', 'gb200': 'gb200-nvl72'}
# The groups to which plan::EngineOverheads was fitted.
FITTED = ('Llama-3.1-70B h100_sxm', 'Llama-3.1-8B h100_sxm', 'Llama-3.1-70B b200_sxm')
LIMITS_MS = (10, 15, 20, 30, 50)
PROFILE_FILES = pathlib.Path(__file__).parents[2] / 'lib/plan/profiles'
MOST_IMPOSSIBLE = 0.1
PROMPT_FACTOR = 1.25  # of plan::EngineOverheads


def form_of(model, quantisation):
    if model == 'gpt-oss-120b':
        return 'mxfp4'
    return {'': 'bf16', 'int4_wo': 'int4'}.get(quantisation, quantisation)


def anchor(row):
    row = dict(row, model=MODELS.get(row['model'], row['model']), form=row['weights'])
    return {**row, **{k: int(row[k]) for k in ('tp', 'ep', 'prompt', 'answer', 'concurrency')},
            **{k: float(row[k]) for k in ('ttft_ms', 'tpot_ms')}}


def sample(row):
    """Returns a row of the table in the form of the anchors, or None for one that is not scored."""
    source, model = row['silicon_data_source'], MODELS.get(row['model_path'])
    if row['mode'] != 'agg' or model is None or row['system'] not in PROFILES or 'wip=True' in source:
        return None
    clients = re.search(r'silicon_concurrency=(\d+)', source)
    if clients and clients.group(1) != row['batch_size']:
        return None
    tp, ep = int(row['tp_size']), 1
    if model not in DENSE:
        moe_tp, ep = int(row['moe_tp_size'] or tp), int(row['moe_ep_size'] or 1)
        groups = int(row['attention_dp_size'] or 0) or max(1, moe_tp * ep // tp)
        if groups != 1 or moe_tp * ep != tp or ep not in (1, tp):
            return None
    if tp > 8:
        return None
    return {'model': model, 'form': form_of(model, row['gemm_quant_mode']), 'system': row['system'],
            'engine': row['backend'], 'version': row['backend_version'], 'tp': tp, 'ep': ep, 'prompt': int(row['isl']), 'answer': int(row['osl']),
            'concurrency': int(row['batch_size']), 'ttft_ms': float(row['silicon_ttft_ms']),
            'tpot_ms': float(row['silicon_tpot_ms'])}


def read(path):
    with open(path, newline='') as file:
        rows = list(csv.DictReader(file))
    if 'silicon_ttft_ms' not in rows[0]:
        return [anchor(row) for row in rows]
    once = {(row['silicon_ttft_ms'], row['silicon_tpot_ms']): row for row in reversed(rows)}
    return [scored for scored in map(sample, reversed(once.values())) if scored]


def search(program, folder, row, concurrency):
    """Returns the rows of one layout by number of clients, or the message of a refusal."""
    command = [program, 'plan', 'search', folder, '--profile', PROFILES[row['system']], '--devices', str(row['tp']),
               '--tp', str(row['tp']), '--ep', '1', '--pp', '1', '--prompt-len', str(row['prompt']),
               '--output-len', str(row['answer']), '--concurrency', ','.join(map(str, concurrency)),
               '--straddle', 'uneven-aligned', '--exit-zero', '--json']
    if row['ep'] > 1:
        command.append('--expert-parallel')
    document = json.loads(subprocess.run(command, capture_output=True, text=True).stdout)
    if 'error' in document:
        return document['error']['message']
    layout = [found for found in document['rows'] if found['expert_parallel'] == (row['ep'] > 1)]
    if not layout:
        return '; '.join(refused['reason'] for refused in document['refused'])
    return {found['concurrency']: found for found in layout}


def predict(program, rows):
    """Adds to every row what the program says of it, with one run per layout and lengths."""
    keys = ('model', 'form', 'system', 'tp', 'ep', 'prompt', 'answer')
    runs = collections.defaultdict(list)
    for row in rows:
        runs[tuple(row[key] for key in keys)].append(row)
    by_model = sorted(runs.items(), key=lambda run: run[0])
    held = None
    with tempfile.TemporaryDirectory() as folder:
        for key, group in by_model:
            if key[:2] != held:
                headers.write_model(key[0], key[1], folder)
                held = key[:2]
            found = search(program, folder, group[0], sorted({row['concurrency'] for row in group}))
            for row in group:
                row['refusal'] = found if isinstance(found, str) else ''
                row['said'] = None if isinstance(found, str) else found[row['concurrency']]


def is_starved(row):
    return row['said'] is not None and row['said']['concurrency_that_fits'] < row['concurrency']


def is_impossible(row, efficiency):
    """True if a measured answer takes less than its share of the work at the rates of the data sheet."""
    parts, own_again = row['said']['answer'], 1 - 1 / PROMPT_FACTOR
    products = parts['compute_ms'] - own_again * min(parts['compute_ms'], row['said']['ttft']['prompt_ms'])
    least = efficiency['compute'] * products + efficiency['memory'] * parts['memory_ms']
    return row['ttft_ms'] + (row['answer'] - 1) * row['tpot_ms'] < least


def impossible_groups(rows):
    """Returns the groups of one setup in which too many rows are impossible."""
    efficiencies, groups = {}, collections.defaultdict(list)
    for row in rows:
        profile = PROFILES[row['system']]
        if profile not in efficiencies:
            efficiencies[profile] = json.loads((PROFILE_FILES / f'{profile}.json').read_text())['efficiency']
        groups[setup_of(row)].append(is_impossible(row, efficiencies[profile]))
    return {group for group, flags in groups.items() if statistics.mean(flags) >= MOST_IMPOSSIBLE}


def setup_of(row):
    return ' '.join((row['model'], row['form'], row['system'], row['engine'], row['version'] or 'unknown'))


def errors(rows, name):
    return sorted(abs(row['said'][name] / row[name] - 1) for row in rows)


def measures(rows, name):
    found = errors(rows, name)
    groups = collections.defaultdict(list)
    for row in rows:
        groups[f"{row['model']} {row['system']}"].append(row)
    means = {group: statistics.mean(errors(of, name)) for group, of in groups.items()}
    worst = max(means, key=means.get)
    return {'rows': len(found), 'mean': statistics.mean(found), 'median': statistics.median(found),
            'p90': found[int(0.9 * (len(found) - 1))],
            'within_15': statistics.mean(error <= 0.15 for error in found),
            'within_25': statistics.mean(error <= 0.25 for error in found),
            'bias': statistics.median(row['said'][name] / row[name] for row in rows),
            'mean_of_groups': statistics.mean(means.values()), 'worst_group': f'{worst} {means[worst]:.3f}'}


def per_device(row, said):
    times = row['said'] if said else row
    answer = times['ttft_ms'] + (row['answer'] - 1) * times['tpot_ms']
    return row['concurrency'] * row['answer'] / answer / row['tp']


def choices(rows):
    """Takes the layout and clients with most tokens per second and device among those that shall keep a limit."""
    workloads = collections.defaultdict(list)
    for row in rows:
        workloads[row['model'], row['form'], row['system'], row['engine'], row['prompt'], row['answer']].append(row)
    kept, lost, missed = [], [], 0
    for of in workloads.values():
        for limit in LIMITS_MS:
            possible = [row for row in of if row['tpot_ms'] <= limit]
            allowed = [row for row in of if row['said']['tpot_ms'] <= limit]
            if not possible or not allowed:
                missed += bool(possible)
                continue
            taken = max(allowed, key=lambda row: per_device(row, True))
            kept.append(taken['tpot_ms'] <= limit)
            best = max(per_device(row, False) for row in possible)
            if kept[-1]:
                lost.append(1 - per_device(taken, False) / best)
    return {'choices': len(kept), 'kept': statistics.mean(kept) if kept else 0,
            'lost': statistics.mean(lost) if lost else 0, 'missed': missed}


def reversals(rows):
    """Counts pairs of which the one on more devices is slower by 5 %, and those that are predicted."""
    alike = collections.defaultdict(list)
    for row in rows:
        alike[row['model'], row['form'], row['system'], row['engine'], row['ep'] > 1, row['prompt'], row['answer'],
              row['concurrency']].append(row)
    pairs = [(few, many) for of in alike.values() for few in of for many in of
             if few['tp'] < many['tp'] and many['tpot_ms'] > 1.05 * few['tpot_ms']]
    return {'reversals': len(pairs),
            'predicted': sum(many['said']['tpot_ms'] > few['said']['tpot_ms'] for few, many in pairs)}


def report_of(rows):
    known = [row for row in rows if row['said'] is not None]
    fed = [row for row in known if not is_starved(row)]
    left_out = impossible_groups(fed)
    fair = [row for row in fed if setup_of(row) not in left_out]
    report = {'coverage': len(known) / len(rows), 'starved': len(known) - len(fed),
              'impossible': len(fed) - len(fair), 'impossible_groups': sorted(left_out)}
    parts = {'dense': [row for row in fair if row['model'] in DENSE],
             'experts': [row for row in fair if row['model'] not in DENSE],
             'all': fair}
    for name, of in parts.items():
        if not of:
            continue
        report[f'tpot_{name}'] = measures(of, 'tpot_ms')
        low = [row for row in of if row['concurrency'] <= 8]
        high = [row for row in of if row['concurrency'] > 8]
        if low:
            report[f'ttft_low_{name}'] = measures(low, 'ttft_ms')
        if high:
            report[f'ttft_high_{name}'] = measures(high, 'ttft_ms')
    return report | choices(fair) | reversals(fair)


def above(report, limits):
    """Returns the measures that break a limit: {"tpot_all.mean": 0.15, "coverage": [0.9, 1]}."""
    broken = []
    for path, limit in limits.items():
        value = report
        for key in path.split('.'):
            value = value[key]
        least, most = limit if isinstance(limit, list) else (0, limit)
        if not least <= value <= most:
            broken.append(f'{path} is {value:.3f}, and {least} to {most} is allowed')
    return broken


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('program')
    parser.add_argument('table')
    parser.add_argument('--limits')
    parser.add_argument('--dense', action='store_true', help='models without experts only')
    parser.add_argument('--rows', help='write every row with its prediction')
    args = parser.parse_args()
    rows = read(args.table)
    if args.dense:
        rows = [row for row in rows if row['model'] in DENSE]
    predict(args.program, rows)
    if args.rows:
        with open(args.rows, 'w') as file:
            json.dump(rows, file)
    for message in sorted({row['refusal'] for row in rows if row['refusal']}):
        print('refused:', message, file=sys.stderr)
    report = report_of(rows)
    groups = {f"{row['model']} {row['system']}" for row in rows}
    unseen = [row for row in rows if f"{row['model']} {row['system']}" not in FITTED]
    if unseen and groups & set(FITTED):
        report['unseen_groups'] = report_of(unseen)
    print(json.dumps(report, indent=2))
    broken = above(report, json.load(open(args.limits))) if args.limits else []
    for line in broken:
        print(line, file=sys.stderr)
    return 1 if broken else 0


if __name__ == '__main__':
    sys.exit(main())
