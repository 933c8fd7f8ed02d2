"""torch: tensors, load_rank, DTensor and the DCP reader, in one process and in several."""

import json
import math
import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import SAMPLE

import shardtool as st

torch = pytest.importorskip("torch", reason="torch is not installed")


def test_tensors_equal_those_of_safe_open(outputs):
    from safetensors import safe_open

    output = outputs({"tp": 4})
    for rank in range(4):
        held = st.open(output).rank(rank, framework="pt")
        with safe_open(output / f"model-rank-{rank}-part-0.safetensors", framework="pt") as f:
            for name in f.keys():
                assert torch.equal(held.get_tensor(name), f.get_tensor(name))
                assert torch.equal(held.get_slice(name)[1:3], f.get_slice(name)[1:3])


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "float8_e5m2", "complex64", "bool", "uint16"])
def test_every_type_of_torch_is_kept(tmp_path, dtype):
    from safetensors.torch import save_file

    tensor = torch.arange(24).reshape(4, 6).to(getattr(torch, dtype))
    save_file({"t": tensor}, tmp_path / "model.safetensors")
    read = st.open(tmp_path).get_tensor("t", framework="pt")
    assert read.dtype == tensor.dtype and torch.equal(read.view(torch.uint8), tensor.view(torch.uint8))


def write_f4(path, shapes):
    """A file of F4 tensors, whose bytes count up."""
    header, data = {}, b""
    for name, shape in shapes.items():
        size = math.prod(shape) // 2
        header[name] = {"dtype": "F4", "shape": shape, "data_offsets": [len(data), len(data) + size]}
        data += bytes(range(size))
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def codes(tensor):
    return tensor.view(torch.uint8)


@pytest.fixture
def f4(tmp_path):
    if not hasattr(torch, "float4_e2m1fn_x2"):
        pytest.skip("this torch has no elements of 4 bits")
    (tmp_path / "model").mkdir()
    write_f4(tmp_path / "model" / "model.safetensors", {"w": [6, 8]})
    return tmp_path


def test_pairs_of_f4_are_elements_of_torch(f4):
    from safetensors import safe_open

    with safe_open(f4 / "model" / "model.safetensors", framework="pt") as f:
        whole = f.get_tensor("w")
    ck = st.open(f4 / "model")
    read = ck.get_tensor("w", framework="pt")
    assert read.dtype == torch.float4_e2m1fn_x2 and read.shape == whole.shape == (6, 4)
    assert torch.equal(codes(read), codes(whole))
    rows = ck.get_slice("w", framework="pt")
    assert torch.equal(codes(rows[1:3]), codes(whole)[1:3]) and torch.equal(codes(rows[2]), codes(whole)[2])
    assert torch.equal(codes(rows[1:5, 2:6]), codes(whole)[1:5, 1:3])
    for refused in [(slice(0, 2), slice(1, 4)), (slice(0, 2), slice(0, 3)), (0, 0)]:
        with pytest.raises(st.MappingError) as caught:
            rows[refused]
        assert caught.value.id == "E0218" and caught.value.tensor == "w" and caught.value.hint


@pytest.mark.parametrize("strategy, box", [("rowwise", (slice(3, 6),)), ("columnwise", (slice(0, 6), slice(2, 4)))])
def test_ranks_of_f4_are_loaded(f4, strategy, box):
    import shardtool.torch
    import torch.distributed.checkpoint as dcp

    mapping = {"version": 1, "mesh": [{"axis": "tp", "size": 2}], "rules": [{"match": "**", "strategy": strategy}]}
    (f4 / "mapping.json").write_text(json.dumps(mapping))
    st.split(f4 / "model", f4 / "out", mapping=f4 / "mapping.json")
    whole = codes(st.open(f4 / "model").get_tensor("w", framework="pt"))
    model = torch.nn.Module()
    model.register_buffer("w", torch.zeros_like(whole[box]).view(torch.float4_e2m1fn_x2))
    shardtool.torch.load_rank(model, f4 / "out", 1)
    assert torch.equal(codes(model.w), whole[box])
    state = {"w": torch.zeros_like(whole).view(torch.float4_e2m1fn_x2)}
    dcp.load(state, storage_reader=shardtool.torch.StorageReader(f4 / "out"), no_dist=True)
    assert torch.equal(codes(state["w"]), whole)


def test_f4_that_is_not_in_pairs_is_refused(f4):
    write_f4(f4 / "model" / "model.safetensors", {"odd": [2, 3]})
    ck = st.open(f4 / "model")
    assert ck.get_tensor("odd").nbytes == 3
    with pytest.raises(st.ResourceError, match="2 F4 in one element, and the last axis of .2, 3. does not divide"):
        ck.get_tensor("odd", framework="pt")
    with pytest.raises(st.ResourceError, match="numpy has no elements of type F4"):
        ck.get_tensor("odd", framework="np")


class Rank(torch.nn.Module):
    """Parameters of the names and shapes of a rank."""

    def __init__(self, held):
        super().__init__()
        for name in held.keys():
            shape = held.get_slice(name).shape
            self.register_parameter(name.replace(".", "-"), torch.nn.Parameter(torch.zeros(shape), False))

    def load_state_dict(self, state_dict, strict=True):
        return super().load_state_dict({name.replace(".", "-"): value for name, value in state_dict.items()}, strict)


@pytest.mark.parametrize("source, options", [("cut", {}), ("whole", {"mesh": {"tp": 4}})])
def test_load_rank_fills_a_model(outputs, source, options):
    import shardtool.torch

    cut = st.open(outputs({"tp": 4})).rank(2, framework="pt")
    model = Rank(cut)
    shardtool.torch.load_rank(model, outputs({"tp": 4}) if source == "cut" else SAMPLE, 2, **options)
    for name, parameter in model.named_parameters():
        assert torch.equal(parameter, cut.get_tensor(name.replace("-", ".")).float())


def test_placements_of_dtensor_cut_what_the_rank_holds(outputs):
    ck = st.open(outputs({"tp": 2}))
    assert ck["model.layers.0.self_attn.q_proj.weight"].layout.placements == (0,)
    assert ck["model.layers.0.mlp.down_proj.weight"].layout.placements == (1,)
    assert ck["model.norm.weight"].layout.placements == (None,)
    for name in ck:
        (axis,) = ck[name].layout.placements
        whole = ck.get_tensor(name, framework="pt")
        for rank in range(2):
            expected = whole if axis is None else whole.chunk(2, axis)[rank]
            assert torch.equal(ck.rank(rank, framework="pt").get_tensor(name), expected)


def test_a_dtensor_needs_a_process_per_rank(outputs):
    layout = st.open(outputs({"tp": 2}))["model.norm.weight"].layout
    with pytest.raises(st.UsageError, match="a mesh of 2 ranks needs as many processes, and the process group has 0") as caught:
        layout.to_dtensor()
    assert caught.value.hint

    class Other:
        shape = (2, 2)

    with pytest.raises(st.UsageError, match="the DeviceMesh has the sizes .2, 2., and the layout .2,."):
        layout.to_dtensor(Other())


def run_processes(script, folder, *arguments, number):
    """Runs the script in processes that meet over gloo, and fails with what the first that failed has printed."""
    running = [subprocess.Popen([sys.executable, Path(__file__).parent / script, f"file://{folder}/meeting", str(rank), str(number),
                                 *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                env={**os.environ, "OMP_NUM_THREADS": "1"})
               for rank in range(number)]
    printed = [process.communicate()[0] for process in running]
    failed = [text for process, text in zip(running, printed) if process.returncode]
    assert not failed, failed[0]
    assert all(text.endswith("done\n") for text in printed), printed


@pytest.mark.parametrize("mesh", [{"dp": 2, "tp": 2}, {"tp": 2}], ids=str)
def test_processes_join_shards_as_dtensors(outputs, tmp_path, mesh):
    run_processes("dtensor_of_shards.py", tmp_path, outputs(mesh), SAMPLE, number=math.prod(mesh.values()))


def test_shards_of_unequal_length_and_ranks_in_another_order_are_dtensors(tmp_path):
    from safetensors.torch import save_file

    (tmp_path / "model").mkdir()
    save_file({"odd": torch.arange(7 * 5).reshape(7, 5).float(), "wide": torch.arange(6 * 10).reshape(6, 10)},
              tmp_path / "model" / "model.safetensors")
    mapping = {"version": 1, "mesh": [{"axis": "dp", "size": 2}, {"axis": "tp", "size": 2}], "device_order": [0, 2, 1, 3],
               "rules": [{"match": "odd", "strategy": "rowwise"}, {"match": "wide", "strategy": "columnwise"}]}
    (tmp_path / "mapping.json").write_text(json.dumps(mapping))
    st.split(tmp_path / "model", tmp_path / "out", mapping=tmp_path / "mapping.json")
    run_processes("dtensor_of_shards.py", tmp_path, tmp_path / "out", tmp_path / "model", number=4)


@pytest.mark.parametrize("layout", ["plain", "vllm", "dcp"])
def test_processes_load_their_dtensors_by_dcp(outputs, tmp_path, layout):
    run_processes("dcp_of_dtensors.py", tmp_path, outputs({"tp": 4}, layout), SAMPLE, number=2)


def test_a_layout_that_dtensor_lacks_says_why(outputs):
    layout = st.open(outputs({"tp": 4}))["model.layers.0.self_attn.k_proj.weight"].layout
    with pytest.raises(st.Inexpressible, match="rank 0 holds") as caught:
        layout.to_dtensor()
    assert caught.value.code == 4 and caught.value.hint


def test_dcp_loads_outputs(outputs):
    import shardtool.torch
    import torch.distributed.checkpoint as dcp

    reader = shardtool.torch.StorageReader(outputs({"tp": 4}))
    whole = st.open(SAMPLE)
    state = {name: torch.zeros(whole[name].shape, dtype=torch.bfloat16) for name in whole}
    dcp.load(state, storage_reader=reader, no_dist=True)
    for name in whole:
        assert torch.equal(state[name], whole.get_tensor(name, framework="pt"))
