"""Laws of reading: what a rank reads is what its file holds, and slices are numpy's."""

import json
import random

import numpy
import pytest
import torch_free
from conftest import SAMPLE, bytes_read
from safetensors import safe_open
from safetensors.numpy import save_file

import shardtool as st

MESHES = [{"tp": 2}, {"tp": 8}, {"pp": 2, "tp": 2}, {"dp": 2, "tp": 4}]


def stored(folder):
    """Every tensor in the folder's safetensors files, as bytes, by name."""
    tensors = {}
    for path in sorted(folder.glob("*.safetensors")):
        tensors.update(torch_free.read_file(path))
    return tensors


def rank_files(output, rank):
    tensors = {}
    for path in sorted(output.glob(f"model-rank-{rank}-part-*.safetensors")):
        tensors.update(torch_free.read_file(path))
    return tensors


@pytest.mark.parametrize("mesh", MESHES, ids=str)
def test_a_rank_reads_what_its_file_holds(outputs, mesh):
    ck = st.open(outputs(mesh))
    assert ck.mesh == mesh
    for rank in range(numpy.prod(list(mesh.values()))):
        held = ck.rank(rank)
        expected = rank_files(outputs(mesh), rank)
        assert sorted(held.keys()) == sorted(expected)
        for name, (shape, data) in expected.items():
            tensor = held.get_tensor(name)
            assert (tensor.shape, bytes(memoryview(tensor).cast("B"))) == (shape, data)


@pytest.mark.parametrize("mesh", MESHES, ids=str)
def test_the_whole_is_joined_from_all_ranks(outputs, mesh):
    ck = st.open(outputs(mesh))
    for name, (shape, data) in stored(SAMPLE).items():
        tensor = ck.get_tensor(name)
        assert (tensor.shape, bytes(memoryview(tensor).cast("B"))) == (shape, data)


@pytest.mark.parametrize("mesh", MESHES, ids=str)
def test_a_whole_checkpoint_with_a_mesh_has_the_shards_of_its_split(outputs, mesh):
    cut, whole = st.open(outputs(mesh)), st.open(SAMPLE, mesh=mesh)
    for rank in range(numpy.prod(list(mesh.values()))):
        for name in cut.rank(rank).keys():
            assert bytes(whole.rank(rank).get_tensor(name)) == bytes(cut.rank(rank).get_tensor(name))


@pytest.mark.parametrize("mesh", MESHES, ids=str)
def test_slices_make_the_shard_of_the_whole(outputs, mesh):
    ck = st.open(outputs(mesh))
    for name in ck:
        whole = numpy.asarray(ck.get_tensor(name))
        for rank in ck[name].layout.ranks:
            shard = numpy.zeros(ck[name].layout.shape(rank), whole.dtype)
            for s in ck[name].layout.slices(rank=rank):
                shard[s.dst] = whole[s.src]
                assert shard[s.dst].shape == s.shape
            assert numpy.array_equal(shard, numpy.asarray(ck.rank(rank).get_tensor(name)))


@pytest.mark.parametrize("mesh", MESHES, ids=str)
def test_a_rank_has_the_methods_of_safe_open(outputs, mesh):
    ck = st.open(outputs(mesh))
    for rank in range(numpy.prod(list(mesh.values()))):
        held = ck.rank(rank)
        with safe_open(outputs(mesh) / f"model-rank-{rank}-part-0.safetensors", framework="np") as f:
            assert held.keys() == sorted(f.keys()) and held.offset_keys() == f.offset_keys()
            assert held.metadata() == f.metadata()
            read = held.get_tensors(framework="np")
            assert list(read) == f.offset_keys() and all(numpy.array_equal(read[name], f.get_tensor(name)) for name in read)
            for name in f.keys():
                assert held.get_slice(name).get_shape() == f.get_slice(name).get_shape()


def test_a_rank_that_was_not_written_is_refused(tmp_path):
    st.split(SAMPLE, tmp_path / "some", mesh={"tp": 4}, ranks=[0, 1])
    ck = st.open(tmp_path / "some")
    assert ck.rank(1).keys()
    with pytest.raises(st.InputError, match="the files of rank 3 are not here"):
        ck.rank(3)
    with pytest.raises(st.UsageError, match="there is no rank 4"):
        ck.rank(4)
    with pytest.raises(st.UsageError, match="there is no framework 'tf'"):
        ck.rank(0, framework="tf")


def test_keys_in_file_order_and_metadata_are_those_of_all_files_of_a_rank(tmp_path):
    first = {"c": numpy.zeros(4, numpy.int8), "a": numpy.zeros(2, numpy.float64)}
    save_file(first, tmp_path / "model-00001-of-00002.safetensors", metadata={"format": "pt", "step": "7"})
    save_file({"b": numpy.zeros(2)}, tmp_path / "model-00002-of-00002.safetensors", metadata={"step": "8", "by": "me"})
    rank = st.open(tmp_path, mesh="tp=2", mapping=replicated(tmp_path)).rank(1)
    assert sorted(rank.keys()) == ["a", "b", "c"] and rank.offset_keys() == ["a", "c", "b"]
    assert rank.metadata() == {"by": "me", "format": "pt", "step": "7"}
    save_file(first, tmp_path / "alone.safetensors")
    assert st.open(tmp_path / "alone.safetensors", mapping=replicated(tmp_path)).rank(0).metadata() is None


def replicated(folder):
    path = folder / "mapping.json"
    path.write_text(json.dumps({"version": 1, "mesh": [{"axis": "tp", "size": 2}],
                                "rules": [{"match": "**", "strategy": "replicate"}]}))
    return path


def random_subscript(rng, shape):
    parts = []
    for extent in shape[: rng.randint(0, len(shape))]:
        kind = rng.choice(["integer", "slice", "open"])
        if kind == "integer" and extent:
            parts.append(rng.randint(-extent, extent - 1))
        elif kind == "slice":
            parts.append(slice(rng.randint(-extent, extent), rng.randint(-extent, extent + 3)))
        else:
            parts.append(slice(None))
    if rng.random() < 0.3:
        parts.insert(rng.randint(0, len(parts)), ...)
    return tuple(parts)


def test_subscripts_mean_what_they_mean_to_numpy(tmp_path):
    rng = random.Random(1)
    arrays = {"m": numpy.arange(7 * 11, dtype=numpy.int32).reshape(7, 11), "scalar": numpy.array(3.0, numpy.float32),
              "cube": numpy.arange(60, dtype=numpy.float64).reshape(3, 4, 5), "none": numpy.zeros((0, 4), numpy.int64)}
    save_file(arrays, tmp_path / "model.safetensors")
    ck = st.open(tmp_path)
    for _ in range(400):
        name = rng.choice(list(arrays))
        subscript = random_subscript(rng, arrays[name].shape)
        read = ck.get_slice(name, framework="np")[subscript]
        assert read.dtype == arrays[name].dtype and numpy.array_equal(read, arrays[name][subscript]), (name, subscript)


@pytest.mark.parametrize("subscript, error", [((7,), IndexError), ((-8,), IndexError), ((0, 0, 0), IndexError),
                                              ((slice(None, None, 2),), ValueError), ((..., ...), IndexError),
                                              ("a", TypeError), (1.0, TypeError), ([0, 1], TypeError), (True, TypeError),
                                              (None, TypeError), ((0, None), TypeError), (10**30, IndexError)], ids=str)
def test_subscripts_that_are_none_are_refused(tmp_path, subscript, error):
    save_file({"m": numpy.zeros((7, 11))}, tmp_path / "model.safetensors")
    with pytest.raises(error) as raised:
        st.open(tmp_path).get_slice("m")[subscript]
    assert "nanobind" not in str(raised.value) and "arguments" not in str(raised.value)


def test_opening_reads_headers_and_slices_read_their_own_bytes(tmp_path):
    whole = numpy.arange(4096 * 4096, dtype=numpy.float32).reshape(4096, 4096)
    save_file({"m": whole}, tmp_path / "model.safetensors")
    (tmp_path / "mapping.json").write_text(json.dumps({
        "version": 1, "mesh": [{"axis": "tp", "size": 2}], "rules": [{"match": "**", "strategy": "rowwise"}]}))
    st.split(tmp_path / "model.safetensors", tmp_path / "out", mapping=tmp_path / "mapping.json")
    before = bytes_read()
    ck = st.open(tmp_path / "out")
    assert bytes_read() - before < 1 << 20
    for rows in (slice(10, 20), slice(2040, 2056)):
        ck.get_slice("m")[:1]
        before = bytes_read()
        ck.get_slice("m")[rows]
        asked = (rows.stop - rows.start) * 4096 * 4
        assert asked <= bytes_read() - before < asked + 4096
    # A rank's rows lie in one piece, which is mapped from 256 KiB on, and read below.
    before = bytes_read()
    assert ck.rank(1).get_slice("m")[10:30].nbytes == 20 * 4096 * 4 and bytes_read() - before < 4096
    before = bytes_read()
    read = ck.rank(1).get_slice("m", framework="np")[10:20]
    assert 10 * 4096 * 4 <= bytes_read() - before < 10 * 4096 * 4 + 4096
    assert numpy.array_equal(read, whole[2048 + 10:2048 + 20])


def test_writing_to_a_tensor_leaves_the_file_as_it_is(tmp_path):
    save_file({"m": numpy.zeros((512, 512), numpy.float32)}, tmp_path / "model.safetensors")
    ck = st.open(tmp_path)
    array = ck.get_tensor("m", framework="np")
    array += 1
    assert array.min() == 1 and ck.get_tensor("m", framework="np").max() == 0


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64",
                                   "float16", "float32", "float64"])
def test_numpy_sees_the_elements_of_safe_open(tmp_path, dtype):
    array = numpy.random.default_rng(1).integers(0, 2, (5, 3)).astype(dtype)
    save_file({"t": array}, tmp_path / "model.safetensors")
    with safe_open(tmp_path / "model.safetensors", framework="np") as f:
        expected = f.get_tensor("t")
    tensor = st.open(tmp_path).get_tensor("t")
    for read in (tensor.numpy(), numpy.asarray(tensor), numpy.asarray(memoryview(tensor))):
        assert read.dtype == expected.dtype and numpy.array_equal(read, expected)
    if dtype != "bool":
        assert numpy.array_equal(numpy.from_dlpack(tensor), expected)


def test_a_tensor_outlives_its_checkpoint(outputs):
    array = numpy.asarray(st.open(outputs({"tp": 2})).rank(0).get_tensor("model.norm.weight"))
    assert array.sum() > 0


def test_bfloat16_is_ml_dtypes_or_a_refusal(outputs, monkeypatch):
    import sys

    rank = st.open(outputs({"tp": 2})).rank(1, framework="np")
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    with pytest.raises(st.ResourceError, match="ml_dtypes"):
        rank.get_tensor("model.norm.weight")
    monkeypatch.undo()
    ml_dtypes = pytest.importorskip("ml_dtypes")
    assert rank.get_tensor("model.norm.weight").dtype == ml_dtypes.bfloat16


def test_names_and_lengths_are_those_of_the_files(outputs):
    ck = st.open(outputs({"tp": 4}))
    assert sorted(ck) == sorted(ck.keys()) == sorted(stored(SAMPLE)) and len(ck) == len(ck.keys())
    assert "model.norm.weight" in ck and "model.norm" not in ck and 3 not in ck
    info = ck["model.norm.weight"]
    assert (info.name, info.dtype, info.shape, info.nbytes) == ("model.norm.weight", "BF16", (64,), 128)


def test_threads_read_at_the_same_time(outputs):
    from concurrent.futures import ThreadPoolExecutor

    ck = st.open(outputs({"tp": 2}))
    expected = {name: bytes(ck.get_tensor(name)) for name in ck}
    with ThreadPoolExecutor(8) as pool:
        names = list(ck) * 20
        for name, data in zip(names, pool.map(lambda name: bytes(ck.get_tensor(name)), names)):
            assert data == expected[name]
