"""Checkpoints in every format that Python users have: what is read is what the program that wrote it reads."""

import json

import numpy
import pytest
from conftest import SAMPLE

import shardtool as st


def same_bytes(tensor, other):
    return tensor.shape == other.shape and bytes(tensor) == bytes(other)


@pytest.mark.parametrize("layout, padded", [("vllm", ["lm_head.weight", "model.embed_tokens.weight"]), ("sglang", None)])
def test_shards_of_engines_have_the_names_of_the_model(outputs, layout, padded):
    plain, engine, whole = st.open(outputs({"tp": 2})), st.open(outputs({"tp": 2}, layout)), st.open(SAMPLE)
    assert list(engine) == list(plain) and engine.mesh == {"tp": 2}
    for name in whole:
        assert same_bytes(engine.get_tensor(name), whole.get_tensor(name)), name
        for rank in range(2):
            shard = numpy.asarray(engine.rank(rank).get_tensor(name))
            for s in engine[name].layout.slices(rank):
                assert numpy.array_equal(shard[s.dst], numpy.asarray(whole.get_tensor(name))[s.src])
            if padded is not None and name not in padded:
                assert same_bytes(engine.rank(rank).get_tensor(name), plain.rank(rank).get_tensor(name)), name


@pytest.mark.parametrize("layout", ["dcp", "dcp-hf"])
def test_outputs_in_chunks_are_whole(outputs, layout):
    ck, whole = st.open(outputs({"tp": 2}, layout)), st.open(SAMPLE)
    assert ck.mesh is None and sorted(ck) == sorted(whole)
    for name in whole:
        assert same_bytes(ck.get_tensor(name), whole.get_tensor(name)), name
        assert same_bytes(ck.get_slice(name)[1:3], whole.get_slice(name)[1:3]), name


def test_an_output_for_vllm_is_that_of_the_program(program, tmp_path):
    import subprocess

    report = st.split(SAMPLE, tmp_path / "module", mesh={"tp": 2}, layout="vllm")
    subprocess.run([program, "-q", "split", SAMPLE, "-o", tmp_path / "program", "--tp", "2", "--layout", "vllm"], check=True)
    files = sorted(path.name for path in (tmp_path / "program").iterdir())
    assert report.ok and sorted(path.name for path in (tmp_path / "module").iterdir()) == files
    for name in files:
        assert (tmp_path / "module" / name).read_bytes() == (tmp_path / "program" / name).read_bytes(), name


@pytest.fixture
def state():
    """Tensors of several types, by name."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    torch.manual_seed(1)
    return {
        "model.a.weight": torch.randn(6, 8), "model.b.weight": torch.randn(5, 3).to(torch.bfloat16),
        "model.c.bias": torch.arange(7), "model.d.scale": torch.tensor(3.5), "model.e.mask": torch.rand(4, 4) > 0.5,
    }


def assert_has(ck, state):
    import torch

    assert sorted(ck) == sorted(state)
    for name, tensor in state.items():
        read = ck.get_tensor(name, framework="pt")
        assert read.dtype == tensor.dtype and torch.equal(read, tensor), name
        if tensor.dim() == 2:
            assert torch.equal(ck.get_slice(name, framework="pt")[1:3, 2:], tensor[1:3, 2:])


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.pt", "model.pth"])
@pytest.mark.parametrize("is_zip", [True, False], ids=["zip", "legacy"])
def test_files_of_torch_save(tmp_path, state, name, is_zip):
    import torch

    torch.save(state, tmp_path / name, _use_new_zipfile_serialization=is_zip)
    assert_has(st.open(tmp_path / name), state)
    assert_has(st.open(tmp_path), state)


def test_a_torch_index(tmp_path, state):
    import torch

    places = {name: f"pytorch_model-0000{1 + number % 2}-of-00002.bin" for number, name in enumerate(state)}
    for file in set(places.values()):
        torch.save({name: state[name] for name in state if places[name] == file}, tmp_path / file)
    (tmp_path / "pytorch_model.bin.index.json").write_text(json.dumps({"metadata": {}, "weight_map": places}))
    assert_has(st.open(tmp_path), state)


def test_a_checkpoint_of_torch_distributed(tmp_path, state):
    import torch.distributed.checkpoint as dcp

    dcp.save(state, checkpoint_id=tmp_path / "dcp", no_dist=True)
    ck = st.open(tmp_path / "dcp")
    assert_has(ck, state)
    mapping = {"version": 1, "mesh": [{"axis": "tp", "size": 2}], "rules": [
        {"match": "**.weight", "strategy": "rowwise"}, {"match": "**.{bias,scale,mask}", "strategy": "replicate"}]}
    (tmp_path / "mapping.json").write_text(json.dumps(mapping))
    cut = st.open(tmp_path / "dcp", mapping=tmp_path / "mapping.json")
    assert (cut.rank(1, framework="pt").get_tensor("model.a.weight") == state["model.a.weight"][3:]).all()
    assert cut.rank(1).metadata() is None


FLOATS = ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "float8_e4m3fnuz", "float8_e5m2fnuz", "complex64"]


@pytest.mark.parametrize("dtype", FLOATS)
def test_torch_takes_the_memory_by_dlpack(tmp_path, dtype):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    from safetensors.torch import save_file

    tensor = torch.randn(64, 300).to(getattr(torch, dtype))
    save_file({"t": tensor}, tmp_path / "model.safetensors")
    read = st.open(tmp_path).get_tensor("t")
    try:
        shared = torch.from_dlpack(read)
    except (RuntimeError, BufferError) as error:
        if "nsupported" not in str(error) and "not supported" not in str(error):
            raise
        pytest.skip(f"torch {torch.__version__} takes no {dtype} by DLPack: {error}")
    assert shared.dtype == tensor.dtype and torch.equal(shared.view(torch.uint8), tensor.view(torch.uint8))
    shared.view(torch.uint8)[0, 0] ^= 1
    assert bytes(memoryview(read).cast("B"))[0] == shared.view(torch.uint8)[0, 0]
