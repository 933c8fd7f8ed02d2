"""Loads one rank of a model with SGLang's loaders on the CPU, without stages and expert parallelism.

`prepare` imports SGLang, once for all loads; `parameters` runs in a process per rank (forked_ranks.py). Packages that need
a GPU or are not installed are replaced by modules whose attributes do nothing: loading uses none of them.
"""
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
import types

import sharded_models

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


def prepare():
    """Imports SGLang with the classes of all its models. It logs those that need an absent package: no model here does."""
    import logging
    import warnings

    warnings.simplefilter("ignore")
    replace_absent_packages()
    import sglang.srt.model_loader.loader  # noqa: F401
    import sglang.srt.server_args  # noqa: F401
    logging.disable(logging.WARNING)
    import sglang.srt.models.registry  # noqa: F401
    logging.disable(logging.NOTSET)


def set_up(arguments, mesh, folder, rank):
    """Joins the process groups of a load. The ranks meet by a file, so that two loads never ask for the same port."""
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
        world_size=mesh["tp"], rank=rank, local_rank=rank, backend="gloo", distributed_init_method=f"file://{folder}/meet")
    parallel_state.initialize_model_parallel(backend="gloo")
    from sglang.srt.layers.dp_attention import initialize_dp_attention
    initialize_dp_attention(arguments)


def parameters(checkpoint, load_format, mesh, saved, folder, rank):
    """Returns the rows (sharded_models.read) of all parameters. load_format is auto (an unsharded model) or sharded_state.

    The engine also saves them, in several files in the folder `saved`, unless that is None.
    """
    from sglang.srt.configs.device_config import DeviceConfig
    from sglang.srt.configs.load_config import LoadConfig
    from sglang.srt.configs.model_config import ModelConfig
    from sglang.srt.model_loader.loader import ShardedStateLoader, get_model_loader
    from sglang.srt.server_args import ServerArgs

    arguments = ServerArgs(model_path=str(checkpoint), tp_size=mesh["tp"], device="cpu", load_format=load_format,
                           dtype="bfloat16", skip_tokenizer_init=True, disable_cuda_graph=True,
                           attention_backend="torch_native", sampling_backend="pytorch", grammar_backend="none")
    set_up(arguments, mesh, folder, rank)
    config = ModelConfig(str(checkpoint), dtype="bfloat16")
    loader = get_model_loader(LoadConfig(load_format=load_format), config)
    model = loader.load_model(model_config=config, device_config=DeviceConfig("cpu"))
    if saved is not None:
        ShardedStateLoader.save_model(model, str(saved), None, sharded_models.FILE_BYTES)
    return sharded_models.rows(ShardedStateLoader._filter_subtensors(model.state_dict()))
