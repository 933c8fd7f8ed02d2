"""torch: tensors, load_rank, DTensor placements and the DCP reader, all in one process."""

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
    mesh, placements = ck["model.layers.0.self_attn.q_proj.weight"].layout.to_dtensor()
    assert mesh == {"tp": 2} and placements[0].is_shard(0)
    assert ck["model.layers.0.mlp.down_proj.weight"].layout.placements == (1,)
    assert ck["model.norm.weight"].layout.to_dtensor()[1][0].is_replicate()
    for name in ck:
        (axis,) = ck[name].layout.placements
        whole = ck.get_tensor(name, framework="pt")
        for rank in range(2):
            expected = whole if axis is None else whole.chunk(2, axis)[rank]
            assert torch.equal(ck.rank(rank, framework="pt").get_tensor(name), expected)


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
