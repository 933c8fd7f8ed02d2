"""Plans: their transfers, what they are for other programs, and the layouts of engines."""

import copy
import json
import pickle
import subprocess

import numpy
import pytest
from conftest import SAMPLE, documents_of

import shardtool as st


@pytest.mark.parametrize("mesh, moves", [({"tp": 8}, True), ({"tp": 4}, False)], ids=["some transfers", "none"])
def test_a_plan_is_pickled_and_copied(outputs, mesh, moves):
    p = st.plan(outputs({"tp": 4}), mesh=mesh)
    assert (len(p.transfers) > 0) == moves
    for other in (pickle.loads(pickle.dumps(p)), copy.copy(p), copy.deepcopy(p)):
        assert type(other) is st.Plan and other == p and other.devices == p.devices
        assert list(other.transfers) == list(p.transfers) and other.bytes_moved == p.bytes_moved


def test_a_plan_of_several_outputs_is_that_of_their_split(outputs, tmp_path):
    for number, ranks in enumerate([[0, 1], [2, 3]]):
        st.split(SAMPLE, tmp_path / str(number), mesh={"tp": 4}, ranks=ranks)
    parts = st.plan([tmp_path / "0", tmp_path / "1"], mesh={"tp": 8})
    whole = st.plan(outputs({"tp": 4}), mesh={"tp": 8})
    assert parts.reshard == whole.reshard and list(parts.transfers) == list(whole.transfers)
    with pytest.raises(st.UsageError, match="the list of paths is empty"):
        st.plan([])


def test_config_alone_has_the_memory_of_its_weights_and_moves_nothing(tmp_path):
    (tmp_path / "config.json").write_bytes((SAMPLE / "config.json").read_bytes())
    p = st.plan(tmp_path, mesh={"tp": 2}, context=64)
    assert p.from_config and len(p.transfers) == 0
    assert p.devices == st.plan(SAMPLE, mesh={"tp": 2}, context=64).devices
    with pytest.raises(st.UsageError):
        p.to("dtensor")


def test_a_plan_that_does_not_fit_is_not_ok(outputs):
    for source in (SAMPLE, outputs({"tp": 2})):
        assert st.plan(source, mesh={"tp": 2}, budget=1 << 30).ok
        tight = st.plan(source, mesh={"tp": 2}, budget=1)
        assert not tight.ok and tight.status == "findings" and tight.verdict.fits is False


def test_a_plan_lists_its_transfers(outputs):
    p = st.plan(SAMPLE, mesh={"tp": 8})
    rows = numpy.asarray(memoryview(p.transfers.rows))
    assert len(p.transfers) == len(rows) > 0
    assert rows["bytes"].sum() == p.bytes_moved == p.lower_bound == sum(t.bytes for t in p.transfers)
    assert set(rows["src_rank"]) == {-1} and set(rows["dst_rank"]) == set(range(8))
    assert {t.tensor for t in p.transfers} == set(st.open(SAMPLE))
    moved = st.plan(outputs({"tp": 4}), mesh={"tp": 8})
    assert moved.bytes_moved == sum(t.bytes for t in moved.transfers) and moved.gap == 0
    assert all(t.src_rank in range(4) and t.src_rank != t.dst_rank for t in moved.transfers)
    stays = st.plan(outputs({"tp": 4}), mesh={"tp": 4})
    assert stays.bytes_moved == len(stays.transfers) == 0
    for number, transfer in enumerate(moved.transfers):
        assert tuple(rows_of(moved)[number])[1:] == transfer[1:] and moved.transfers[number - len(moved.transfers)] == transfer
    assert moved.transfers[:2] == [moved.transfers[0], moved.transfers[1]]
    with pytest.raises(IndexError):
        moved.transfers.slices(len(moved.transfers))


def rows_of(plan):
    return numpy.asarray(memoryview(plan.transfers.rows))


@pytest.mark.parametrize("source, target", [(None, {"tp": 4}), ({"tp": 4}, {"tp": 8}), ({"tp": 8}, {"pp": 2, "tp": 2}),
                                            ({"dp": 2, "tp": 2}, {"tp": 4}), ({"tp": 2}, {"dp": 2, "tp": 4})], ids=str)
def test_the_slices_of_all_transfers_make_the_shards_of_the_target(outputs, source, target):
    before = st.open(SAMPLE) if source is None else st.open(outputs(source))
    after = st.open(outputs(target))
    shards = {}
    for rank in range(numpy.prod(list(target.values()))):
        for name in after.rank(rank).keys():
            shard = numpy.zeros(after[name].layout.shape(rank), numpy.uint16)
            if source is not None and rank in before[name].layout.ranks:  # what the rank keeps
                whole = numpy.zeros(before[name].shape, numpy.uint16)
                for s in before[name].layout.slices(rank):
                    whole[s.src] = numpy.asarray(before.rank(rank).get_tensor(name))[s.dst]
                for s in after[name].layout.slices(rank):
                    shard[s.dst] = whole[s.src]
            shards[name, rank] = shard
    p = st.plan(SAMPLE if source is None else outputs(source), mesh=target)
    for number, t in enumerate(p.transfers):
        sender = numpy.asarray(before.get_tensor(t.tensor) if t.src_rank == -1 else before.rank(t.src_rank).get_tensor(t.tensor))
        receiver = shards[t.tensor, t.dst_rank]
        slices = p.transfers.slices(number)
        for s in slices:
            assert not receiver[s.dst].any()
            receiver[s.dst] = sender[s.src]
        assert t.bytes == 2 * sum(numpy.prod(s.shape) for s in slices)
        starts = [numpy.ravel_multi_index([part.start for part in box], whole) for box, whole in (
            (slices[0].src, sender.shape), (slices[0].dst, receiver.shape))]
        assert [t.src_offset, t.dst_offset] == [2 * start for start in starts]
    for (name, rank), shard in shards.items():
        assert numpy.array_equal(shard, numpy.asarray(after.rank(rank).get_tensor(name))), (name, rank)


@pytest.mark.parametrize("to", ["dtensor", "nccl-m2n", "mooncake"])
def test_a_plan_is_data_for_other_programs(outputs, program, to):
    emitted = subprocess.run([program, "plan", outputs({"tp": 2}), "--to-mesh", "tp=1", "--emit", to], capture_output=True,
                             check=True).stdout
    assert st.plan(outputs({"tp": 2}), mesh={"tp": 1}).to(to) == json.loads(emitted)


def test_a_layout_that_a_program_cannot_express_names_the_tensor(outputs):
    p = st.plan(outputs({"tp": 4}), mesh={"tp": 8})
    with pytest.raises(st.InputError, match="k_proj|v_proj") as caught:
        p.to("dtensor")
    assert caught.value.tensor


def tensor_bytes(file):
    """Bytes of all tensors of a safetensors file, by its header."""
    with open(file, "rb") as opened:
        header = json.loads(opened.read(int.from_bytes(opened.read(8), "little")))
    header.pop("__metadata__", None)
    return sum(end - begin for begin, end in (tensor["data_offsets"] for tensor in header.values()))


def test_a_plan_of_an_engine_has_the_bytes_of_its_files(outputs, program):
    p = st.plan(SAMPLE, mesh={"tp": 4}, layout="vllm")
    printed = documents_of(program, "plan", SAMPLE, "--to-mesh", "tp=4", "--layout", "vllm")
    assert p.devices == printed["devices"] and p.reshard == printed["reshard"]
    plain = st.plan(SAMPLE, mesh={"tp": 4})
    for device, without in zip(p.devices, plain.devices):
        assert device.weights_bytes == tensor_bytes(outputs({"tp": 4}, "vllm") / f"model-rank-{device.rank}-part-0.safetensors")
        assert device.weights_bytes > without.weights_bytes  # vLLM pads the vocabulary
