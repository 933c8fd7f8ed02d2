#!/usr/bin/env python3
"""Compares the times of `shardtool plan search` with measured ones.

    score.py SHARDTOOL anchors.csv            the 35 rows that are kept here
    score.py SHARDTOOL silicon_sample.csv     the whole table of ai-dynamo/aiconfigurator
    score.py SHARDTOOL benchmarks.json ...    rows of InferenceX, which no one has fitted anything to
    --markdown       print a table in Markdown: groups that may be fitted, and groups that are held back
    --limits FILE    fail if a measure is above the limit that a JSON file sets
    --bounds FILE    fail if a row lacks a time, or its TPOT has another error than a JSON file says

Rows of a closed loop: `concurrency` clients, one pool of tp devices. Left out: repeated measurements, layouts that cannot
be, runs in progress, other batches than the clients, models with a multi-token head, attention data parallelism, and
systems without a profile. A row is starved if the cache lacks places for its clients, or if it took longer to the first
token than from there to the last; those are counted apart. So are groups in which a tenth of the rows is faster than the
hardware: less time per answer than all products of the prompts and answers of that time at the peak rates, plus all reads
of dense models at full bandwidth. Their prompts were most likely cached.

Rows of InferenceMAX (most of the table), later called InferenceX, draw lengths from 0.8 to 1.0 of the nominal ones; they are
priced with 0.9. Its scripts give the type of the cache, and 0.9 of a device's memory, which is the default of the other runs,
too.

The JSON files are answers of InferenceX's dashboard, as SemiAnalysisAI/InferenceX-app keeps them to test itself
(packages/app/cypress/fixtures/api/benchmarks.json and benchmarks-history.json). They say which runs guess ahead with a
multi-token head, so DeepSeek-R1 can be scored.

A group is a model on a system. Constants may be fitted to the seen ones alone; a hash of the name chooses the others.
"""
import argparse
import collections
import csv
import hashlib
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
DASHBOARD_MODELS = {'dsr1': 'DeepSeek-R1'}
DASHBOARD_FORMS = {'fp8': 'fp8_block', 'fp4': 'nvfp4'}
DENSE = ('Llama-3.1-70B', 'Llama-3.1-8B', 'Qwen3-32B')
PROFILES = {'h100_sxm': 'h100-sxm', 'h200_sxm': 'h200-sxm', 'b200_sxm': 'b200-sxm', 'gb200': 'gb200-nvl72'}
# Runs whose script sets an fp8 cache (InferenceMAX, benchmarks/70b_fp8_*.sh and 70b_fp4_*.sh, dsr1_*.sh).
FP8_CACHES = (('Llama-3.1-70B', 'b200_sxm', None), ('Llama-3.1-70B', 'h200_sxm', None), ('DeepSeek-R1', 'b200_sxm', None),
              ('DeepSeek-R1', 'h200_sxm', 'trtllm'))
INFERENCE_MAX = re.compile(r'^2026_|_cfg\d+$')
DRAWN = 0.9  # mean of lengths between 0.8 and 1.0 of the nominal ones
MEMORY_FRACTION = '0.9'
HELD_BACK_OF = 5  # one group of so many is held back
LIMITS_MS = (10, 15, 20, 30, 50)
MARGINS = (0, 0.05, 0.1)
PROFILE_FILES = pathlib.Path(__file__).parents[2] / 'lib/plan/profiles'
MOST_IMPOSSIBLE = 0.1
BOUND = 0.02  # change of a modelled time that is shown
# Parameters that a token is multiplied with, in 10^9, of the models' cards.
ACTIVE = {'Llama-3.1-70B': 70.6, 'Llama-3.1-8B': 8.0, 'Qwen3-32B': 32.8, 'Qwen3-235B': 22, 'MiniMax-M2.5': 10,
          'gpt-oss-120b': 5.1, 'Kimi-K2.5': 32, 'DeepSeek-R1': 37}
# Rate of the products and bytes per weight, by form.
PRODUCTS = {'bf16': ('bf16', 2), 'fp8': ('fp8', 1), 'fp8_block': ('fp8', 1), 'nvfp4': ('fp4', 0.5), 'mxfp4': ('fp4', 0.5),
            'int4': ('bf16', 0.5)}


def form_of(model, quantisation):
    if model == 'gpt-oss-120b':
        return 'mxfp4'
    return {'': 'bf16', 'int4_wo': 'int4'}.get(quantisation, quantisation)


def is_held_back(row):
    number = int(hashlib.sha1(group_of(row).encode()).hexdigest(), 16)
    return row['model'] in DASHBOARD_MODELS.values() or number % HELD_BACK_OF == 0


def group_of(row):
    return f"{row['model']} {row['system']}"


def run_of(row):
    """Returns the workload that the program is asked for: lengths, and the type of the cache."""
    drawn = INFERENCE_MAX.search(row['id']) is not None
    lengths = [round((DRAWN if drawn else 1) * row[length]) for length in ('prompt', 'answer')]
    fp8 = drawn and any((row['model'], row['system'], engine) in FP8_CACHES for engine in (None, row['engine']))
    return lengths + ['fp8' if fp8 else '']


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
    return {'id': row['id'], 'model': model, 'form': form_of(model, row['gemm_quant_mode']), 'system': row['system'],
            'engine': row['backend'], 'version': row['backend_version'], 'tp': tp, 'ep': ep, 'prompt': int(row['isl']), 'answer': int(row['osl']),
            'concurrency': int(row['batch_size']), 'ttft_ms': float(row['silicon_ttft_ms']),
            'tpot_ms': float(row['silicon_tpot_ms'])}


def dashboard(row):
    """Returns a row of InferenceX's dashboard in the form of the anchors, or None for one that is not scored."""
    model, system, engine = DASHBOARD_MODELS.get(row['model']), row['hardware'] + '_sxm', row['framework']
    tp, ep = row['decode_tp'], row['decode_ep']
    one_pool = not row['disagg'] and not row['is_multinode'] and not row['decode_dp_attention']
    if model is None or system not in PROFILES or row['spec_method'] != 'none' or not one_pool or ep not in (1, tp):
        return None
    times = row['metrics']
    mean = 'mean' if 'mean_ttft' in times else 'median'  # the history has no means
    return {'id': f"2026_{row['run_url']}", 'model': model, 'form': DASHBOARD_FORMS[row['precision']], 'system': system,
            'engine': {'trt': 'trtllm'}.get(engine, engine), 'version': (row.get('image') or '').rpartition(':')[2],
            'tp': tp, 'ep': ep, 'prompt': row['isl'], 'answer': row['osl'], 'concurrency': row['conc'],
            'ttft_ms': 1e3 * times[f'{mean}_ttft'], 'tpot_ms': 1e3 * times[f'{mean}_tpot'], 'has_means': mean == 'mean'}


def read_dashboard(paths):
    """Returns the newest measurement of every setup, layout and workload."""
    rows = [row for path in paths for row in json.loads(pathlib.Path(path).read_text())]
    rows.sort(key=lambda row: (row['date'], 'mean_ttft' in row['metrics']))
    scored = [row for row in map(dashboard, rows) if row]
    keys = ('model', 'form', 'system', 'engine', 'tp', 'ep', 'prompt', 'answer', 'concurrency')
    return list({tuple(row[key] for key in keys): row for row in scored}.values())


def read(paths):
    if paths[0].endswith('.json'):
        return read_dashboard(paths)
    path, = paths
    with open(path, newline='') as file:
        rows = list(csv.DictReader(file))
    if 'silicon_ttft_ms' not in rows[0]:
        return [anchor(row) for row in rows]
    once = {(row['silicon_ttft_ms'], row['silicon_tpot_ms']): row for row in reversed(rows)}
    return [scored for scored in map(sample, reversed(once.values())) if scored]


def search(program, folder, row, concurrency):
    """Returns the rows of one layout by number of clients, or the message of a refusal."""
    prompt, answer, cache = run_of(row)
    command = [program, 'plan', 'search', folder, '--profile', PROFILES[row['system']], '--devices', str(row['tp']),
               '--tp', str(row['tp']), '--ep', '1', '--pp', '1', '--prompt-len', str(prompt),
               '--output-len', str(answer), '--concurrency', ','.join(map(str, concurrency)),
               '--memory-fraction', MEMORY_FRACTION, '--straddle', 'uneven-aligned', '--exit-zero', '--json']
    if cache:
        command += ['--kv-dtype', cache]
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
    keys = ('model', 'form', 'system', 'tp', 'ep')
    runs = collections.defaultdict(list)
    for row in rows:
        runs[tuple(row[key] for key in keys) + tuple(run_of(row))].append(row)
    held = None
    with tempfile.TemporaryDirectory() as folder:
        for key, group in sorted(runs.items(), key=lambda run: run[0]):
            if key[:2] != held:
                headers.write_model(key[0], key[1], folder)
                held = key[:2]
            found = search(program, folder, group[0], sorted({row['concurrency'] for row in group}))
            for row in group:
                row['refusal'] = found if isinstance(found, str) else ''
                row['said'] = None if isinstance(found, str) else found[row['concurrency']]


def is_starved(row):
    """True if clients wait for a place: the cache lacks room for all, or, whatever the server's reason, a client waited
    for its first token longer than for all others."""
    waits = row['ttft_ms'] > (row['answer'] - 1) * row['tpot_ms']
    return waits or (row['said'] is not None and row['said']['concurrency_that_fits'] < row['concurrency'])


def work_of(row):
    """Returns the least seconds of a device for products and for reads of one prompt and answer of every client."""
    prompt, answer, _ = run_of(row)
    profile = json.loads((PROFILE_FILES / f"{PROFILES[row['system']]}.json").read_text())
    kind, bytes_each = PRODUCTS[row['form']]
    rates, parameters = profile['dense_tflops'], ACTIVE[row['model']] * 1e9
    products = 2 * parameters * (prompt + answer) / rates.get(kind, rates['bf16'])
    reads = 0
    if row['model'] in DENSE:
        config = headers.MODELS[row['model']][1]
        layers, size = config['num_hidden_layers'], config['head_dim']
        seen = prompt * prompt / 2 + answer * (prompt + answer / 2)
        products += 4 * layers * size * config['num_attention_heads'] * seen / rates['bf16']
        cache = 2 * layers * size * config['num_key_value_heads']  # bytes of a position in fp8
        reads = answer * (parameters * bytes_each + row['concurrency'] * cache * (prompt + answer / 2))
    return (row['concurrency'] * products / 1e12 / row['tp'], reads / (profile['memory']['gb_per_s'] * 1e9) / row['tp'])


def is_impossible(row):
    """True if a measured answer takes less than its share of the work at the rates of the data sheet: in its time one
    prompt and answer of every client is computed."""
    _, answer, _ = run_of(row)
    return row['ttft_ms'] + (answer - 1) * row['tpot_ms'] < 1e3 * sum(work_of(row))


def impossible_groups(rows):
    """Returns the groups of one setup in which too many rows are impossible."""
    groups = collections.defaultdict(list)
    for row in rows:
        groups[setup_of(row)].append(is_impossible(row))
    return {group for group, flags in groups.items() if statistics.mean(flags) >= MOST_IMPOSSIBLE}


def setup_of(row):
    return ' '.join((row['model'], row['form'], row['system'], row['engine'], row['version'] or 'unknown'))


def errors(rows, name):
    return sorted(abs(row['said'][name] / row[name] - 1) for row in rows)


def measures(rows, name):
    found = errors(rows, name)
    groups = collections.defaultdict(list)
    for row in rows:
        groups[group_of(row)].append(row)
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


def choices(rows, margin):
    """Takes the layout and clients with most tokens per second and device among those that shall keep a limit, if every
    time is longer by the margin."""
    workloads = collections.defaultdict(list)
    for row in rows:
        workloads[row['model'], row['form'], row['system'], row['engine'], row['prompt'], row['answer']].append(row)
    kept, lost, missed = [], [], 0
    for of in workloads.values():
        for limit in LIMITS_MS:
            possible = [row for row in of if row['tpot_ms'] <= limit]
            allowed = [row for row in of if row['said']['tpot_ms'] * (1 + margin) <= limit]
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
    experts = [row for row in fair if row['model'] not in DENSE]
    parts = {'dense': [row for row in fair if row['model'] in DENSE],
             'experts': experts,
             'experts_cut': [row for row in experts if row['ep'] == 1],
             'experts_whole': [row for row in experts if row['ep'] > 1],
             'all': fair}
    for name, of in parts.items():
        if not of:
            continue
        report[f'tpot_{name}'] = measures(of, 'tpot_ms')
        low = [row for row in of if row['concurrency'] <= 8 and row.get('has_means', True)]
        high = [row for row in of if row['concurrency'] > 8 and row.get('has_means', True)]
        if low:
            report[f'ttft_low_{name}'] = measures(low, 'ttft_ms')
        if high:
            report[f'ttft_high_{name}'] = measures(high, 'ttft_ms')
    for margin in MARGINS:
        report[f'choices_{margin:.0%}'] = choices(fair, margin)
    return report | reversals(fair)


def cells_of(report):
    """Returns the lines of a table of one part of the rows: measure, value."""
    def percent(value):
        return f'{100 * value:.1f} %'
    lines = [('rows with an answer', percent(report['coverage'])),
             ('starved; faster than the hardware', f"{report['starved']}; {report['impossible']}")]
    for part in ('dense', 'experts', 'experts_cut', 'experts_whole', 'all'):
        if f'tpot_{part}' not in report:
            continue
        tpot = report[f'tpot_{part}']
        lines.append((f'TPOT, {part}: rows, mean, median, p90',
                      f"{tpot['rows']}: " + ', '.join(percent(tpot[name]) for name in ('mean', 'median', 'p90'))))
        lines.append((f'TPOT, {part}: within 15 %, 25 %; bias',
                      f"{percent(tpot['within_15'])}, {percent(tpot['within_25'])}; {tpot['bias']:.2f}"))
    lines.append(('TPOT: mean of groups; worst group',
                  f"{percent(report['tpot_all']['mean_of_groups'])}; {report['tpot_all']['worst_group']}"))
    for name, words in (('low', 'to 8 clients'), ('high', 'above 8 clients')):
        if f'ttft_{name}_all' in report:
            lines.append((f'TTFT, {words}: median', percent(report[f'ttft_{name}_all']['median'])))
    for margin in MARGINS:
        chosen = report[f'choices_{margin:.0%}']
        lines.append((f'choices with a margin of {margin:.0%}: kept; lost; missed',
                      f"{percent(chosen['kept'])}; {percent(chosen['lost'])}; {chosen['missed']}"))
    lines.append(('reversals predicted', f"{report['predicted']} of {report['reversals']}"))
    return dict(lines)


def print_table(parts):
    columns = {name: cells_of(report) for name, report in parts.items()}
    measures_of_all = dict.fromkeys(measure for column in columns.values() for measure in column)
    print('| measure |', ' | '.join(columns), '|')
    print('|---' * (1 + len(columns)) + '|')
    for measure in measures_of_all:
        print(f'| {measure} |', ' | '.join(column.get(measure, '-') for column in columns.values()), '|')


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


def outside(rows, bounds):
    """Returns the rows whose modelled TPOT, as a fraction of the measured one, is not what the bounds say."""
    broken = [f'{row["id"]}: no time: {row["refusal"]}' for row in rows if row['said'] is None]
    for row in rows:
        if row['said'] is None:
            continue
        ratio = row['said']['tpot_ms'] / row['tpot_ms']
        if abs(ratio - bounds[row['id']]) > BOUND:
            broken.append(f"{row['id']}: TPOT is {ratio:.3f} of the measured one, was {bounds[row['id']]:.3f}")
    return broken


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('program')
    parser.add_argument('table', nargs='+')
    parser.add_argument('--limits')
    parser.add_argument('--bounds')
    parser.add_argument('--write-bounds', help='write what --bounds reads')
    parser.add_argument('--markdown', action='store_true', help='a table instead of JSON')
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
    parts = {'seen': [row for row in rows if not is_held_back(row)], 'unseen': [row for row in rows if is_held_back(row)]}
    if all(parts.values()):
        report |= {name: report_of(of) for name, of in parts.items()}
    if args.markdown:
        print_table({name: report[name] for name in parts if name in report} or {'all': report})
    else:
        print(json.dumps(report, indent=2))
    if args.write_bounds:
        bounds = {row['id']: round(row['said']['tpot_ms'] / row['tpot_ms'], 3) for row in rows if row['said']}
        pathlib.Path(args.write_bounds).write_text(json.dumps(bounds, indent=1) + '\n')
    broken = above(report, json.load(open(args.limits))) if args.limits else []
    broken += outside(rows, json.load(open(args.bounds))) if args.bounds else []
    for line in broken:
        print(line, file=sys.stderr)
    return 1 if broken else 0


if __name__ == '__main__':
    sys.exit(main())
