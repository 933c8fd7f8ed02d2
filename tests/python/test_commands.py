"""The commands: their reports, their errors, progress and interruption."""

import inspect
import json
import os
import shutil
import signal
import subprocess
import threading
from pathlib import Path

import numpy
import pytest
import torch_free
from conftest import SAMPLE, documents_of, without_measures
from safetensors.numpy import save_file

import shardtool as st


def content(folder):
    tensors = {}
    for path in sorted(folder.glob("*.safetensors")):
        tensors.update(torch_free.read_file(path))
    return tensors


def test_merge_gives_back_what_split_cut(tmp_path):
    report = st.split(SAMPLE, tmp_path / "tp4", mesh={"tp": 4})
    assert report.ok and report.plan.ranks == 4 and report.written.files > 4
    st.reshard(tmp_path / "tp4", tmp_path / "tp8", mesh="tp=8")
    assert st.check(tmp_path / "tp8", read_data=True).ok
    assert st.validate(tmp_path / "tp8", reference=SAMPLE).ok
    st.merge(tmp_path / "tp8", tmp_path / "whole")
    assert content(tmp_path / "whole") == content(SAMPLE)
    assert st.diff(tmp_path / "whole", SAMPLE).equal


def test_shares_write_the_bytes_of_one_run(tmp_path):
    one, shared, whole = tmp_path / "one", tmp_path / "shared", tmp_path / "whole"
    st.split(SAMPLE, one, mesh={"tp": 4})
    for number in (2, 0, 1):
        report = st.split(SAMPLE, shared, mesh={"tp": 4}, share=f"{number}/3" if number else (number, 3))
        assert report.share.published == (shared / "manifest.json").exists() == (number == 1)
    assert st.finish(shared).was_complete
    for file in one.iterdir():
        assert (shared / file.name).read_bytes() == file.read_bytes()
    st.merge(shared, whole, share="0/2")
    with pytest.raises(st.InputError) as caught:
        st.finish(whole)
    assert caught.value.id == "E0315"
    st.merge(shared, whole, share="1/2")
    assert content(whole) == content(SAMPLE)


def test_shares_of_a_validation_leave_verdicts(tmp_path):
    st.split(SAMPLE, tmp_path / "tp2", mesh={"tp": 2})
    one = st.validate(tmp_path / "tp2", reference=SAMPLE)
    first = st.validate(tmp_path / "tp2", reference=SAMPLE, share="0/2", verdicts=tmp_path / "verdicts")
    last = st.validate(tmp_path / "tp2", reference=SAMPLE, share="1/2", verdicts=tmp_path / "verdicts")
    assert first.share.missing == [1] and last.ok
    assert st.finish(tmp_path / "verdicts").digest == last.digest == one.digest


def test_reports_are_the_documents_of_the_command_line(tmp_path, program):
    st.split(SAMPLE, tmp_path / "tp2", mesh={"tp": 2})
    for command in (["inspect"], ["check"]):
        printed = json.loads(subprocess.run([program, *command, tmp_path / "tp2", "--json"], capture_output=True,
                                            check=True).stdout)
        report = getattr(st, command[0])(tmp_path / "tp2")
        for fields in (printed, report):
            fields.get("summary", {}).pop("seconds", None)
        assert report == printed


@pytest.mark.parametrize("keywords, flags, tiers", [
    ({}, [], {"V0", "V1", "V2"}), ({"quick": True}, ["--quick"], {"V0", "V1"}),
    ({"ordered": True}, ["--ordered"], {"V0", "V1", "V2", "V3"}),
    ({"native": True, "tokens": 3, "seed": 9}, ["--native", "--tokens", "3", "--seed", "9"], {"V0", "V1", "V2", "V4"}),
    ({"values": True, "require_coverage": 100, "axes": None}, ["--values", "--require-coverage", "100"], {"V0", "V1", "V2"}),
    ({"model_config": SAMPLE / "config.json"}, ["--model-config", SAMPLE / "config.json"], {"V0", "V1", "V2"}),
], ids=str)
def test_a_validation_proves_what_it_is_asked_for(outputs, program, keywords, flags, tiers):
    report = st.validate(outputs({"tp": 2}), reference=SAMPLE, **keywords)
    assert {tier.tier for tier in report.tiers if tier.verdict != "not run"} >= tiers
    assert without_measures(report) == documents_of(program, "validate", outputs({"tp": 2}), "-r", SAMPLE, *flags)


def test_a_validation_takes_a_graph_and_a_golden_file(outputs, program, tmp_path):
    graph = tmp_path / "graph.json"
    graph.write_bytes(subprocess.run([program, "graphs", "show", "llama"], capture_output=True, check=True).stdout)
    assert st.validate(outputs({"tp": 2}), reference=SAMPLE, graph=graph).ok
    with pytest.raises(st.InputError, match="none.json"):
        st.validate(outputs({"tp": 2}), reference=SAMPLE, golden=tmp_path / "none.json")
    with pytest.raises(st.InputError, match="none.json"):
        st.validate(outputs({"tp": 2}), reference=SAMPLE, graph=tmp_path / "none.json")


def test_files_of_another_tool_are_read_by_the_name_of_their_layout(tmp_path, program):
    theirs, config = tmp_path / "theirs", tmp_path / "config.json"
    st.split(SAMPLE, theirs, mesh={"tp": 2}, layout="meta")
    (theirs / "manifest.json").unlink()
    (theirs / "config.json").rename(config)
    source = f"meta:{theirs}"
    report = st.check(source, model_config=config, read_data=True)
    printed = documents_of(program, "check", source, "--model-config", config, "--read-data")
    assert report.ok and report.summary.tensors == len(st.open(SAMPLE)) and printed["findings"] == report.findings == []
    assert sorted(st.open(source, model_config=config)) == sorted(st.open(SAMPLE))
    st.merge(source, tmp_path / "whole", model_config=config)
    assert content(tmp_path / "whole") == content(SAMPLE)
    fields = json.loads(config.read_text())
    config.write_text(json.dumps({**fields, "num_hidden_layers": fields["num_hidden_layers"] + 1}))
    with pytest.raises(st.InputError, match="config"):
        st.check(source, model_config=config)
    with pytest.raises(st.UsageError, match="unknown format 'none'"):
        st.check(f"none:{theirs}")


def test_findings_and_differences_are_reports(tmp_path):
    st.split(SAMPLE, tmp_path / "tp2", mesh={"tp": 2})
    path = next((tmp_path / "tp2").glob("model-rank-1-*.safetensors"))
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    report = st.check(tmp_path / "tp2", read_data=True)
    assert not report.ok and report.findings
    assert not st.validate(tmp_path / "tp2", reference=SAMPLE).ok


@pytest.mark.parametrize("work, kind, code, id", [
    (lambda: st.open("none"), st.InputError, 4, "E0306"),
    (lambda: st.split(SAMPLE, "none", mesh={"tp": 0}), st.MappingError, 3, "E0215"),
    (lambda: st.split(SAMPLE, "none", mesh={"tp": 2}, dtype="u8"), st.UsageError, 2, None),
    (lambda: st.split(SAMPLE, "none", mesh={"tp": 7}, require_even=True), st.MappingError, 3, None),
    (lambda: st.split(SAMPLE, SAMPLE, mesh={"tp": 2}), st.OutputError, 5, None),
    (lambda: st.split(SAMPLE, "", mesh={"tp": 2}), st.UsageError, 2, None),
    (lambda: st.split(SAMPLE, "none/" + 300 * "n", mesh={"tp": 2}), st.OutputError, 5, None),
    (lambda: st.split(SAMPLE, 300 * "n", mesh={"tp": 2}), st.OutputError, 5, None),
    (lambda: st.split(SAMPLE, "none", mesh={"tp": 2}, preset=""), st.UsageError, 2, None),
    (lambda: st.split(SAMPLE, "none", mesh={"tp": 2}, preset="lama"), st.UsageError, 2, None),
    (lambda: st.split(SAMPLE, "none", mesh={}), st.UsageError, 2, None),
    (lambda: st.open(SAMPLE, mesh={}), st.UsageError, 2, None),
    (lambda: st.plan(SAMPLE, mesh={}), st.UsageError, 2, None),
    (lambda: st.split(SAMPLE, "none", mesh={"tp": 2}, mapping=""), st.UsageError, 2, None),
    (lambda: st.validate(SAMPLE, reference=""), st.UsageError, 2, None),
    (lambda: st.open(SAMPLE, axes="none"), st.MappingError, 3, None),
    (lambda: st.split(SAMPLE, "none", mesh={"tp": 2}, share="3/3"), st.UsageError, 2, None),
    (lambda: st.split(SAMPLE, "none", mesh={"tp": 2}, share=(3, 3)), st.UsageError, 2, None),
    (lambda: st.split(SAMPLE, "none", mesh={"tp": 2}, share=(-1, 3)), st.UsageError, 2, None),
    (lambda: st.validate(SAMPLE, quick=True, native=True), st.UsageError, 2, None),
    (lambda: st.plan(SAMPLE, mesh={"tp": 2}, layout="none"), st.UsageError, 2, None),
    (lambda: st.plan(SAMPLE, mesh={"tp": 2}).to("none"), st.UsageError, 2, None),
    (lambda: st.plan(SAMPLE, mesh={"tp": 2}).to("nccl-m2n"), st.UsageError, 2, None),
    (lambda: st.validate(SAMPLE, share="0/3"), st.UsageError, 2, None),
    (lambda: st.validate(SAMPLE, verdicts="none"), st.UsageError, 2, None),
    (lambda: st.open(SAMPLE)["model.norm.weight"].layout, st.UsageError, 2, None),
    (lambda: st.open(SAMPLE)["model.norm.weights"], st.MappingError, 3, None),
    (lambda: st.open(SAMPLE).get_tensor("model.norm.weight", framework="jax"), st.UsageError, 2, None),
], ids=str)
def test_errors_have_the_class_code_and_help_of_the_command_line(tmp_path, monkeypatch, work, kind, code, id):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(st.Error) as caught:
        work()
    error = caught.value
    assert type(error) is kind and error.code == code
    assert str(error).startswith(f"error[{error.id}]: {error.message}")
    if error.hint:
        assert "help: " + error.hint.splitlines()[0] in str(error)


@pytest.mark.parametrize("name", sorted(name for name in st.__all__ if inspect.isfunction(getattr(st, name))))
def test_a_misspelt_argument_is_a_type_error_that_names_the_right_one(name):
    function = getattr(st, name)
    parameters = list(inspect.signature(function).parameters.values())
    required = {p.name: "none" for p in parameters if p.default is p.empty}
    for parameter in (p.name for p in parameters if p.kind is p.KEYWORD_ONLY and len(p.name) > 4):
        misspelt = parameter[:-2] + parameter[-1]
        with pytest.raises(TypeError) as caught:
            function(**required, **{misspelt: 1})
        assert f"{name}() got an unexpected keyword argument '{misspelt}'" in str(caught.value)
        assert f"'{parameter}'" in str(caught.value).split("did you mean", 1)[1]
    with pytest.raises(TypeError) as caught:
        function(**required, quite_another_thing=1)
    assert "did you mean" not in str(caught.value)


@pytest.mark.parametrize("sources", [[], (path for path in ())], ids=["list", "generator"])
@pytest.mark.parametrize("work", [
    lambda none: st.open(none), lambda none: st.check(none), lambda none: st.validate(none), lambda none: st.merge(none, "out"),
    lambda none: st.reshard(none, "out", mesh={"tp": 2}),
], ids=["open", "check", "validate", "merge", "reshard"])
def test_a_list_without_paths_is_refused(tmp_path, monkeypatch, sources, work):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(st.UsageError, match="the list of paths is empty"):
        work(sources)


@pytest.mark.parametrize("ranks", [[], (), iter([])], ids=["list", "tuple", "generator"])
@pytest.mark.parametrize("command", [st.split, st.reshard])
def test_no_rank_is_not_every_rank(outputs, tmp_path, command, ranks):
    source = SAMPLE if command is st.split else outputs({"tp": 2})
    with pytest.raises(st.UsageError, match="the list of ranks is empty"):
        command(source, tmp_path / "out", mesh={"tp": 4}, ranks=ranks)
    assert not (tmp_path / "out").exists()
    command(source, tmp_path / "out", mesh={"tp": 4}, ranks=(rank for rank in [1, 3]))
    assert {path.name.split("-")[2] for path in (tmp_path / "out").glob("model-rank-*")} == {"1", "3"}


@pytest.mark.parametrize("command, keyword, values", [
    (st.plan, "budget", [0, -5, 2**63, 2**70]), (st.plan, "context", [0, -5, 2**31]), (st.plan, "batch", [0, -1]),
    (st.split, "max_file_size", [0, -1]), (st.split, "threads", [0, -1, 1025]), (st.check, "max_memory", [0, -1, -2**70]),
    (st.validate, "require_coverage", [-1, 100.5, 200, float("nan")]), (st.validate, "tokens", [0, 4097]),
    (st.validate, "seed", [-1, 2**63]),
], ids=lambda part: part if isinstance(part, str) else getattr(part, "__name__", ""))
def test_numbers_that_the_program_refuses_are_refused(outputs, tmp_path, command, keyword, values):
    places = {st.split: (SAMPLE, tmp_path / "out"), st.plan: (SAMPLE,)}.get(command, (outputs({"tp": 2}),))
    mesh = {} if command in (st.check, st.validate) else {"mesh": {"tp": 2}}
    for value in values:
        with pytest.raises(st.UsageError, match=f"{keyword}={value} is not "):
            command(*places, **mesh, **{keyword: value})
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("work, said", [
    (lambda: st.open(SAMPLE, mesh={"tp": 2.0}), "mesh[tp] must be int, not float"),
    (lambda: st.open(SAMPLE, mesh={"tp": "2"}), "mesh[tp] must be int, not str"),
    (lambda: st.open(SAMPLE, mesh={2: 2}), "the name of a mesh axis must be str, not int"),
    (lambda: st.open(SAMPLE, mesh=[("tp", 2)]), "mesh must be dict or str, not list"),
    (lambda: st.open(SAMPLE, mapping={"version": 1}), "mapping must be str or os.PathLike, not dict"),
    (lambda: st.open(SAMPLE, mesh="tp=2", settings=["axes.vocab"]), "settings must be dict, not list"),
    (lambda: st.open(SAMPLE, mesh="tp=2", settings={1: None}), "the path of a setting must be str, not int"),
    (lambda: st.open(SAMPLE).get_tensor("model.norm.weight", framework=False), "framework must be str, not bool"),
    (lambda: st.open(bytes(SAMPLE)), "source must be a list, not bytes"),
    (lambda: st.open([SAMPLE, 1]), "source[1] must be str or os.PathLike, not int"),
    (lambda: st.inspect(1), "source must be str or os.PathLike, not int"),
    (lambda: st.inspect(SAMPLE, filter=1), "filter must be str, not int"),
    (lambda: st.check(SAMPLE, max_memory="64MiB"), "max_memory must be int, not str"),
    (lambda: st.check(SAMPLE, read_data=1), "read_data must be bool, not int"),
    (lambda: st.check(SAMPLE, ignore="ST0301"), "ignore must be a list, not str"),
    (lambda: st.check(SAMPLE, ignore=[301]), "ignore[0] must be str, not int"),
    (lambda: st.split(SAMPLE, "out", mesh="tp=2", ranks="1-2"), "ranks must be a list, not str"),
    (lambda: st.split(SAMPLE, "out", mesh="tp=2", ranks=1), "ranks must be a list, not int"),
    (lambda: st.split(SAMPLE, "out", mesh="tp=2", ranks=numpy.array([0.0])), "ranks[0] must be int, not float64"),
    (lambda: st.split(SAMPLE, "out", mesh="tp=2", threads=True), "threads must be int, not bool"),
    (lambda: st.split(SAMPLE, "out", mesh="tp=2", dtype=16), "dtype must be str, not int"),
    (lambda: st.split(SAMPLE, "out", mesh="tp=2", share=3), "share must be str or a tuple of two int, such as (3, 8)"),
    (lambda: st.split(SAMPLE, "out", mesh="tp=2", share=(0, 1, 2)), "share must be str or a tuple of two int, such as (3, 8)"),
    (lambda: st.split(SAMPLE, "out", mesh="tp=2", share=(0, "2")), "share[1] must be int, not str"),
    (lambda: st.validate(SAMPLE, seed="1"), "seed must be int, not str"),
    (lambda: st.validate(SAMPLE, golden=1), "golden must be str or os.PathLike, not int"),
    (lambda: st.split(SAMPLE, "out", mesh="tp=2", progress=1), "progress must be callable"),
    (lambda: st.validate(SAMPLE, require_coverage="100"), "require_coverage must be float, not str"),
], ids=lambda part: part if isinstance(part, str) else "")
def test_arguments_of_another_type_are_named(tmp_path, monkeypatch, work, said):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TypeError) as caught:
        work()
    assert str(caught.value) == said
    assert not (tmp_path / "out").exists()


def test_paths_are_bytes(tmp_path):
    odd = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))
    shutil.copytree(SAMPLE, odd / "model")
    (odd / "mapping.json").write_text(json.dumps({
        "version": 1, "mesh": [{"axis": "tp", "size": 2}], "rules": [{"match": "**", "strategy": "replicate"}]}))
    assert st.split(odd / "model", odd / "out", mapping=odd / "mapping.json").ok
    ck = st.open(str(odd / "out"))
    assert ck.path == str(odd / "out") and ck.rank(1).get_tensor("model.norm.weight").nbytes == 128
    assert st.check([odd / "out"]).ok and st.inspect(odd / "out").tensors and st.plan(odd / "out").devices
    assert st.diff(odd / "model", odd / "out").equal and st.merge(odd / "out", odd / "whole").ok
    with pytest.raises(st.InputError) as caught:
        st.open(odd / "none")
    assert caught.value.id == "E0306" and os.path.dirname(caught.value.file) == str(odd)
    for work in (lambda path: st.open(path), lambda path: st.open(SAMPLE, mapping=path)):
        with pytest.raises(UnicodeEncodeError):
            work("\ud800")
        with pytest.raises(ValueError, match="embedded null"):
            work("a\0b")


def test_numbers_of_numpy_are_numbers(tmp_path):
    two = numpy.int64(2)
    assert st.split(SAMPLE, tmp_path / "out", mesh={"tp": two}, ranks=numpy.arange(two), threads=two).written.files > 2
    assert st.validate(tmp_path / "out", require_coverage=numpy.float32(50)).ok
    with pytest.raises(st.UsageError, match="ranks.0.=-1 is not a whole number"):
        st.split(SAMPLE, tmp_path / "none", mesh={"tp": two}, ranks=[-1])
    with pytest.raises(st.UsageError, match="the list of ranks names 1 twice"):
        st.split(SAMPLE, tmp_path / "none", mesh={"tp": two}, ranks=[1, 0, 1])
    with pytest.raises(st.UsageError, match=f"mesh.tp.={2**70} is not a whole number"):
        st.open(SAMPLE, mesh={"tp": 2**70})


@pytest.mark.parametrize("mesh, path, value, text", [
    ({"tp": 2}, "axes.vocab", None, "null"), ({"tp": 2}, "axes.vocab.alone", True, "true"),
    ({"a": 2, "tp": 2}, "axes.vocab.mesh", ["a", "tp"], '["a", "tp"]'), ({"tp": 2}, "axes.heads.uneven", "balanced", "balanced"),
    ({"tp": 2}, "axes.vocab", {"mesh": "tp", "uneven": "pad", "pad_to": numpy.int64(64)},
     '{"mesh": "tp", "uneven": "pad", "pad_to": 64}'),
], ids=["null", "bool", "list", "text", "object"])
def test_settings_are_values_of_json(tmp_path, program, mesh, path, value, text):
    st.split(SAMPLE, tmp_path / "module", mesh=mesh, settings={path: value})
    axes = ",".join(f"{axis}={size}" for axis, size in mesh.items())
    subprocess.run([program, "-q", "split", SAMPLE, "-o", tmp_path / "program", "--mesh", axes, "--set", f"{path}={text}"],
                   check=True)
    assert (tmp_path / "module" / "manifest.json").read_bytes() == (tmp_path / "program" / "manifest.json").read_bytes()


def test_a_setting_that_is_no_json_is_named(tmp_path):
    with pytest.raises(TypeError, match="settings.*axes.vocab.*must be a value of JSON, not PosixPath"):
        st.split(SAMPLE, tmp_path / "out", mesh={"tp": 2}, settings={"axes.vocab": ["tp", tmp_path]})
    with pytest.raises(ValueError, match="settings.*axes.vocab.*JSON"):
        st.split(SAMPLE, tmp_path / "out", mesh={"tp": 2}, settings={"axes.vocab": float("nan")})


def test_an_error_says_what_the_program_says(program, tmp_path):
    command = [program, "split", SAMPLE, "-o", tmp_path / "out", "--tp", "7", "--require-even"]
    run = subprocess.run(command, capture_output=True, text=True)
    with pytest.raises(st.Error) as caught:
        st.split(SAMPLE, tmp_path / "out", mesh={"tp": 7}, require_even=True)
    assert run.returncode == caught.value.code
    assert run.stderr.strip() == str(caught.value)


def large_checkpoint(folder, megabytes):
    folder.mkdir()
    save_file({f"layers.{i}.weight": numpy.full((1024, 1024), i, numpy.float32) for i in range(megabytes // 4)},
              folder / "model.safetensors")
    (folder / "mapping.json").write_text(json.dumps({
        "version": 1, "mesh": [{"axis": "tp", "size": 2}], "rules": [{"match": "**", "strategy": "rowwise"}]}))
    return {"mapping": folder / "mapping.json"}


def test_progress_is_called_on_this_thread_and_ends_at_all_bytes(tmp_path):
    options = large_checkpoint(tmp_path / "model", 256)
    calls = []
    st.split(tmp_path / "model", tmp_path / "out", **options, threads=1, max_memory=8 << 20,
             progress=lambda done, total, name: calls.append((done, total, name, threading.get_ident())))
    assert calls and {call[3] for call in calls} == {threading.get_ident()}
    assert [call[0] for call in calls] == sorted(call[0] for call in calls)
    assert calls[-1][0] <= calls[-1][1] == 256 << 20


def test_progress_of_a_check_does_not_fall_back(outputs):
    calls = []
    assert st.check(outputs({"tp": 2}), read_data=True, progress=lambda *call: calls.append(call)).ok
    assert calls[-1][0] == calls[-1][1] > 0
    assert [call[0] for call in calls] == sorted(call[0] for call in calls)


def test_an_exception_of_progress_ends_the_run_and_resume_continues_it(tmp_path):
    options = large_checkpoint(tmp_path / "model", 256)

    class Enough(Exception):
        pass

    def stop(done, total, name):
        raise Enough

    with pytest.raises(Enough):
        st.split(tmp_path / "model", tmp_path / "out", **options, threads=1, max_memory=8 << 20, progress=stop)
    assert not (tmp_path / "out" / "manifest.json").exists()
    assert st.split(tmp_path / "model", tmp_path / "out", **options, resume=True).ok
    assert st.diff(tmp_path / "model", tmp_path / "out").equal


def test_ctrl_c_ends_a_run(tmp_path):
    options = large_checkpoint(tmp_path / "model", 256)
    # A shell starts what runs in the background without Python's handler.
    signal.signal(signal.SIGINT, signal.default_int_handler)

    def interrupt(done, total, name):
        os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        st.split(tmp_path / "model", tmp_path / "out", **options, threads=1, max_memory=8 << 20, progress=interrupt)
    assert not (tmp_path / "out" / "manifest.json").exists()


def test_other_threads_run_while_a_command_works(tmp_path):
    options = large_checkpoint(tmp_path / "model", 256)
    ticks, done = [], threading.Event()

    def tick():
        while not done.wait(0.001):
            ticks.append(1)

    thread = threading.Thread(target=tick)
    thread.start()
    st.split(tmp_path / "model", tmp_path / "out", **options, threads=1, max_memory=8 << 20)
    done.set()
    thread.join()
    assert len(ticks) > 5
