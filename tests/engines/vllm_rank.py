"""Runs one rank of vLLM's loaders on the CPU and prints the parameters as JSON.

usage: vllm_rank.py CHECKPOINT FORMAT TP PP EXPERT_PARALLEL RANK PORT
FORMAT is auto (a whole checkpoint) or sharded_state. No engine is started: the model is built for the rank and loaded
by vLLM's loader for the format, without the processing that follows. VLLM_DIST_IDENT names the shared memory of all ranks.
"""
import json
import os
import sys
import types

os.environ.update(VLLM_LOGGING_LEVEL="ERROR", OMP_NUM_THREADS="1", VLLM_CPU_KVCACHE_SPACE="1", HF_HUB_OFFLINE="1",
                  VLLM_NO_USAGE_STATS="1")


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


def main():
    checkpoint, load_format, tp, pp, experts, rank, port = sys.argv[1:]
    tp, pp, rank = int(tp), int(pp), int(rank)
    import torch
    import xxhash
    from vllm.config import set_current_vllm_config
    from vllm.distributed import init_distributed_environment, initialize_model_parallel
    from vllm.engine.arg_utils import EngineArgs

    arguments = EngineArgs(
        model=checkpoint, tokenizer=checkpoint, skip_tokenizer_init=True, load_format=load_format,
        tensor_parallel_size=tp, pipeline_parallel_size=pp, dtype="bfloat16", max_model_len=64, enforce_eager=True,
        distributed_executor_backend="mp", enable_expert_parallel=experts == "yes")
    config = arguments.create_engine_config()
    config.device_config.device = torch.device("cpu")
    config.device_config.device_type = "cpu"
    with set_current_vllm_config(config):
        init_distributed_environment(world_size=tp * pp, rank=rank, local_rank=rank, backend="gloo",
                                     distributed_init_method=f"tcp://127.0.0.1:{port}")
        initialize_model_parallel(tensor_model_parallel_size=tp, pipeline_model_parallel_size=pp)
        without_kernels()
        from vllm.model_executor.model_loader import get_model_loader
        from vllm.model_executor.model_loader.sharded_state_loader import ShardedStateLoader
        from vllm.model_executor.model_loader.utils import initialize_model
        from vllm.utils.torch_utils import set_default_torch_dtype
        with set_default_torch_dtype(config.model_config.dtype), torch.device("cpu"):
            model = initialize_model(vllm_config=config, model_config=config.model_config)
            for parameter in model.parameters():  # padding is zero in both forms; single values have their own start
                if parameter.numel() > 1:
                    parameter.data.zero_()
        get_model_loader(config.load_config).load_weights(model, config.model_config)
        state = ShardedStateLoader._filter_subtensors(model.state_dict())
    dtypes = {"torch.bfloat16": "BF16", "torch.float32": "F32", "torch.float8_e4m3fn": "F8_E4M3", "torch.int8": "I8",
              "torch.uint8": "U8"}
    rows = {name: [dtypes[str(value.dtype)], list(value.shape), xxhash.xxh3_128_hexdigest(
        value.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())[:16]] for name, value in state.items()}
    print("\nRESULT " + json.dumps(rows), flush=True)
    os._exit(0)  # the process group of a rank that ends first would make the others wait


if __name__ == "__main__":
    main()
