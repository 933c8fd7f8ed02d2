"""Loads one rank of a model with vLLM's loaders on the CPU.

No engine is started: the model is built for the rank and loaded by vLLM's loader for the format, without the processing
that follows. `prepare` imports vLLM, once for all loads; `parameters` runs in a process per rank (forked_ranks.py).
"""
import os
import sys
import types

import sharded_models

os.environ.update(VLLM_LOGGING_LEVEL="ERROR", OMP_NUM_THREADS="1", VLLM_CPU_KVCACHE_SPACE="1", HF_HUB_OFFLINE="1",
                  VLLM_NO_USAGE_STATS="1")


def prepare():
    """Imports vLLM and what its models share, and changes what would need another process or a GPU."""
    import vllm.distributed  # noqa: F401
    import vllm.engine.arg_utils  # noqa: F401
    import vllm.model_executor.model_loader.utils  # noqa: F401
    from vllm.model_executor.models import registry

    # vLLM imports a model's class in a new process to ask for its properties, because the import may initialise CUDA, after
    # which an engine could not fork. A rank imports the same class a moment later, forks nothing and has no CUDA, so it asks
    # in its own process. The same function answers, and it only reads attributes of the class.
    registry._run_in_subprocess = lambda inspect: inspect()
    without_kernels()


def without_kernels():
    """Replaces the choice of kernels for quantised weights: those for CPUs need AMX, and loading uses none."""
    import vllm.model_executor.layers.quantization.compressed_tensors.schemes as schemes
    from vllm.model_executor.layers.fused_moe.oracle.fp8 import Fp8MoeBackend
    from vllm.model_executor.layers.fused_moe.oracle.mxfp4 import Mxfp4MoeBackend
    from vllm.model_executor.layers.quantization import fp8, modelopt, mxfp4
    mxfp4.select_mxfp4_moe_backend = lambda *_, **__: (Mxfp4MoeBackend.CPU, None)
    fp8.select_fp8_moe_backend = lambda *_, **__: (Fp8MoeBackend.TRITON, None)
    for module in [fp8, modelopt, *(sys.modules[name] for name in list(sys.modules) if name.startswith(schemes.__name__))]:
        for name in ("init_fp8_linear_kernel", "init_int8_linear_kernel", "init_nvfp4_linear_kernel"):
            if hasattr(module, name):
                setattr(module, name, lambda *_, **__: types.SimpleNamespace(input_quant_key=lambda: None))


def configuration(checkpoint, load_format, mesh):
    import torch
    from vllm.engine.arg_utils import EngineArgs

    config = EngineArgs(
        model=str(checkpoint), tokenizer=str(checkpoint), skip_tokenizer_init=True, load_format=load_format,
        tensor_parallel_size=mesh["tp"], pipeline_parallel_size=mesh["pp"], dtype="bfloat16", max_model_len=64,
        enforce_eager=True, distributed_executor_backend="mp",
        enable_expert_parallel=mesh["experts"] == "yes").create_engine_config()
    config.device_config.device = torch.device("cpu")
    config.device_config.device_type = "cpu"
    return config


def join(mesh, folder, rank):
    """Joins the process groups of a load. The ranks meet by a file, so that two loads never ask for the same port."""
    from vllm.distributed import init_distributed_environment, initialize_model_parallel

    os.environ["VLLM_DIST_IDENT"] = folder.name  # of the shared memory of all ranks
    init_distributed_environment(world_size=mesh["tp"] * mesh["pp"], rank=rank, local_rank=rank, backend="gloo",
                                 distributed_init_method=f"file://{folder}/meet")
    initialize_model_parallel(tensor_model_parallel_size=mesh["tp"], pipeline_model_parallel_size=mesh["pp"])


def empty_model(config):
    import torch
    from vllm.model_executor.model_loader.utils import initialize_model
    from vllm.utils.torch_utils import set_default_torch_dtype

    with set_default_torch_dtype(config.model_config.dtype), torch.device("cpu"):
        model = initialize_model(vllm_config=config, model_config=config.model_config)
        for parameter in model.parameters():  # padding is zero in both forms; single values have their own start
            if parameter.numel() > 1:
                parameter.data.zero_()
    return model


def parameters(checkpoint, load_format, mesh, saved, folder, rank):
    """Returns the rows (sharded_models.read) of all parameters. load_format is auto (an unsharded model) or sharded_state.

    The engine also saves them, in several files in the folder `saved`, unless that is None.
    """
    from vllm.config import set_current_vllm_config
    from vllm.model_executor.model_loader import get_model_loader
    from vllm.model_executor.model_loader.sharded_state_loader import ShardedStateLoader

    config = configuration(checkpoint, load_format, mesh)
    with set_current_vllm_config(config):
        join(mesh, folder, rank)
        model = empty_model(config)
        get_model_loader(config.load_config).load_weights(model, config.model_config)
        if saved is not None:
            ShardedStateLoader.save_model(model, str(saved), None, sharded_models.FILE_BYTES)
    return sharded_models.rows(ShardedStateLoader._filter_subtensors(model.state_dict()))
