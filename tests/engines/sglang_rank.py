"""Runs one rank of SGLang's loaders on the CPU and prints the parameters as JSON.

usage: sglang_rank.py CHECKPOINT FORMAT TP PP EXPERT_PARALLEL RANK PORT
FORMAT is auto (a whole checkpoint) or sharded_state; PP is 1 and EXPERT_PARALLEL no. Packages that need a GPU or are
not installed are replaced by modules whose attributes do nothing: loading uses none of them.
"""
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import sys
import types

os.environ.update(OMP_NUM_THREADS="1", HF_HUB_OFFLINE="1", SGLANG_USE_CPU_ENGINE="1")

ABSENT = {"sgl_kernel", "flashinfer", "deep_gemm", "flash_attn", "pynvml", "torch_memory_saver", "mistral_common",
          "torchcodec", "torchaudio", "decord", "decord2", "outlines", "datasets", "soundfile", "timm", "torchao",
          "modelscope", "av", "cv2", "numba", "scipy", "blobfile", "pycountry", "distro", "build", "py_spy", "kernels",
          "tilelang", "quack", "cutlass", "flash_mla", "sgl_flash_mla", "sgl_deep_gemm", "flash_attn_4", "humming",
          "nvshmem", "cuda", "easydict", "deep_ep", "smg_grpc_servicer", "smg_grpc_proto", "tvm_ffi",
          "deepseek_recipe", "tml_renderers"}


class Nothing:
    """Stands for any function or object of an absent package."""

    def __init__(self, *_args, **_kwargs):
        pass

    def __call__(self, *args, **kwargs):
        is_decorator = len(args) == 1 and callable(args[0]) and not kwargs
        return args[0] if is_decorator else self

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Nothing()

    def __getitem__(self, _key):
        return self

    def __iter__(self):
        return iter(())

    def __or__(self, _other):
        return self

    __ror__ = __or__

    def __mul__(self, _other):
        return self

    def __mro_entries__(self, _bases):
        return (object,)


class AbsentModule(types.ModuleType):
    __path__ = []

    def __getattr__(self, name):
        if name == "__version__":
            return "99.0"
        if name.startswith("__"):
            raise AttributeError(name)
        if name[0].isupper():
            value = type(name, (), {"__init__": lambda self, *a, **k: None,
                                    "__class_getitem__": classmethod(lambda cls, key: cls)})
        else:
            value = Nothing()
        setattr(self, name, value)
        return value


class AbsentFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, names):
        self.names = names

    def find_spec(self, name, _path, _target=None):
        if name.split(".")[0] not in self.names:
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        return AbsentModule(spec.name)

    def exec_module(self, module):
        pass


def replace_absent_packages():
    # transformers looks for some of them by their metadata, so it comes first.
    import transformers.models.auto.image_processing_auto
    import transformers.models.auto.modeling_auto
    import transformers.models.auto.processing_auto  # noqa: F401
    absent = {name for name in ABSENT if importlib.util.find_spec(name) is None}
    sys.meta_path.insert(0, AbsentFinder(absent))


def set_up(arguments, rank, tp, port):
    import sglang.srt.distributed.device_communicators.pynccl as pynccl
    from sglang.srt import runtime_context
    from sglang.srt.distributed import parallel_state

    runtime_context.get_context().set_server_args(arguments)
    runtime_context.get_exec().comm._set("boundary_reduction", "ar")
    parallel = runtime_context.get_parallel()
    for name, value in {"tp_rank": rank, "pp_rank": 0, "moe_ep_rank": 0, "moe_tp_rank": rank,
                        "moe_dp_rank": 0}.items():
        parallel.override_permanently(**{name: value})
    pynccl.PyNcclCommunicator = type("NoNccl", (), {"__init__": lambda self, *a, **k: None, "disabled": True,
                                                    "available": False})
    parallel_state.init_distributed_environment(
        world_size=tp, rank=rank, local_rank=rank, backend="gloo",
        distributed_init_method=f"tcp://127.0.0.1:{port}")
    parallel_state.initialize_model_parallel(backend="gloo")
    from sglang.srt.layers.dp_attention import initialize_dp_attention
    initialize_dp_attention(arguments)


def main():
    checkpoint, load_format, tp, _pp, _experts, rank, port = sys.argv[1:]
    tp, rank = int(tp), int(rank)
    replace_absent_packages()
    import torch
    import xxhash
    from sglang.srt.server_args import ServerArgs

    arguments = ServerArgs(model_path=checkpoint, tp_size=tp, device="cpu", load_format=load_format, dtype="bfloat16",
                           skip_tokenizer_init=True, disable_cuda_graph=True, attention_backend="torch_native",
                           sampling_backend="pytorch", grammar_backend="none")
    set_up(arguments, rank, tp, port)
    from sglang.srt.configs.device_config import DeviceConfig
    from sglang.srt.configs.load_config import LoadConfig
    from sglang.srt.configs.model_config import ModelConfig
    from sglang.srt.model_loader.loader import ShardedStateLoader, get_model_loader
    config = ModelConfig(checkpoint, dtype="bfloat16")
    loader = get_model_loader(LoadConfig(load_format=load_format), config)
    model = loader.load_model(model_config=config, device_config=DeviceConfig("cpu"))
    state = ShardedStateLoader._filter_subtensors(model.state_dict())
    dtypes = {"torch.bfloat16": "BF16", "torch.float32": "F32"}
    rows = {name: [dtypes[str(value.dtype)], list(value.shape), xxhash.xxh3_128_hexdigest(
        value.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())[:16]] for name, value in state.items()}
    print("\nRESULT " + json.dumps(rows), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
