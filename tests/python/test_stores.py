"""Checkpoints in an object store and in the Hugging Face cache: what is read is what local files hold."""

import sys

import numpy
import pytest
from conftest import ROOT, SAMPLE
from safetensors.numpy import save_file

import shardtool as st

sys.path.append(str(ROOT / "tests" / "stores"))


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """A server that speaks S3, and a bucket in it."""
    pytest.importorskip("moto", reason="moto is not installed")
    import servers

    with servers.moto(tmp_path_factory.mktemp("moto")) as running:
        running.client().create_bucket(Bucket="models")
        yield running


@pytest.fixture
def put(store, monkeypatch):
    """Sends a folder to the store, whose address and keys are in the environment, and returns its location."""
    for name, value in store.environment().items():
        if name.startswith("AWS_"):
            monkeypatch.setenv(name, value)

    def send(folder, prefix):
        for file in folder.iterdir():
            store.client().put_object(Bucket="models", Key=f"{prefix}/{file.name}", Body=file.read_bytes())
        return f"s3://models/{prefix}"

    return send


@pytest.fixture
def cached(tmp_path, monkeypatch):
    """Location of the sample in a Hugging Face cache."""
    repository = tmp_path / "hub" / "models--shardtool--tiny-llama"
    snapshot = repository / "snapshots" / ("a1" * 20)
    snapshot.mkdir(parents=True)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("a1" * 20)
    for file in SAMPLE.iterdir():
        (snapshot / file.name).symlink_to(file)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    return "hf://shardtool/tiny-llama"


def assert_same_ranks(one, other, ranks):
    for rank in range(ranks):
        assert sorted(one.rank(rank).keys()) == sorted(other.rank(rank).keys())
        for name in one.rank(rank).keys():
            tensor = one.rank(rank).get_tensor(name)
            assert tensor.shape == other.rank(rank).get_tensor(name).shape
            assert bytes(tensor) == bytes(other.rank(rank).get_tensor(name)), name


def test_a_whole_checkpoint_in_a_store_is_cut_while_it_is_read(put, outputs):
    assert_same_ranks(st.open(put(SAMPLE, "whole"), mesh={"tp": 4}), st.open(outputs({"tp": 4})), 4)


def test_shards_in_a_store_are_read_and_joined(put, outputs):
    ck = st.open(put(outputs({"tp": 4}), "tp4"))
    assert_same_ranks(ck, st.open(outputs({"tp": 4})), 4)
    whole = st.open(SAMPLE)
    for name in whole:
        assert bytes(ck.get_tensor(name)) == bytes(whole.get_tensor(name)), name


def test_slices_of_tensors_in_a_store_are_those_of_numpy(put, tmp_path):
    array = numpy.random.default_rng(1).integers(0, 1 << 30, (3000, 1200)).astype(numpy.int32)
    (tmp_path / "model").mkdir()
    save_file({"m": array}, tmp_path / "model" / "model.safetensors")
    ck = st.open(put(tmp_path / "model", "large"))
    for subscript in (slice(None), slice(5, 9), (slice(None), slice(17, 30)), (7, ...), (slice(-3, None), 4)):
        assert numpy.array_equal(ck.get_slice("m", framework="np")[subscript], array[subscript]), subscript


def test_commands_read_and_write_a_store(put, tmp_path):
    source = put(SAMPLE, "source")
    assert st.split(source, "s3://models/cut", mesh={"tp": 2}).ok
    assert st.reshard("s3://models/cut", "s3://models/recut", mesh={"tp": 4}).ok
    assert st.check("s3://models/recut", read_data=True).ok
    assert st.validate("s3://models/recut", reference=SAMPLE).ok
    st.merge("s3://models/recut", tmp_path / "whole")
    assert st.diff(tmp_path / "whole", source).equal


def test_what_the_store_lacks_is_an_error_with_help(put):
    put(SAMPLE, "there")
    with pytest.raises(st.Error) as caught:
        st.open("s3://models/not-there")
    assert caught.value.code == 4 and "s3://models/not-there" in str(caught.value)


def test_a_snapshot_of_the_cache_is_opened_and_split(cached, outputs, tmp_path):
    assert_same_ranks(st.open(cached, mesh={"tp": 4}), st.open(outputs({"tp": 4})), 4)
    st.split(cached, tmp_path / "out", mesh={"tp": 4})
    assert st.diff(tmp_path / "out", SAMPLE).equal


def test_a_model_that_was_not_downloaded_names_the_command_that_does(cached):
    with pytest.raises(st.InputError, match="hf download shardtool/other"):
        st.open("hf://shardtool/other")
