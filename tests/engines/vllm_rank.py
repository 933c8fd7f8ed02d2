"""Runs one rank of vLLM's loaders on the CPU and prints the parameters as JSON.

usage: vllm_rank.py CHECKPOINT FORMAT TP PP EXPERT_PARALLEL RANK PORT
FORMAT is auto (a whole checkpoint) or sharded_state. No engine is started: the model is built for the rank and loaded
by vLLM's loader for the format, without the processing that follows.
"""
import json
import os
import sys

os.environ.update(VLLM_LOGGING_LEVEL="ERROR", OMP_NUM_THREADS="1", VLLM_CPU_KVCACHE_SPACE="1", HF_HUB_OFFLINE="1",
                  VLLM_NO_USAGE_STATS="1")


def main():
    checkpoint, load_format, tp, pp, experts, rank, port = sys.argv[1:]
    tp, pp, rank = int(tp), int(pp), int(rank)
    os.environ["VLLM_DIST_IDENT"] = f"shardtool{port}"
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
        import vllm.model_executor.layers.quantization.fp8 as fp8
        fp8.init_fp8_linear_kernel = lambda **_: None  # the kernels of the CPU need AMX; loading uses none
        from vllm.model_executor.model_loader import get_model_loader
        from vllm.model_executor.model_loader.sharded_state_loader import ShardedStateLoader
        from vllm.model_executor.model_loader.utils import initialize_model
        from vllm.utils.torch_utils import set_default_torch_dtype
        with set_default_torch_dtype(config.model_config.dtype), torch.device("cpu"):
            model = initialize_model(vllm_config=config, model_config=config.model_config)
            for parameter in model.parameters():  # padding is zero in both forms; scalars have their own start
                if parameter.dim() > 0:
                    parameter.data.zero_()
        get_model_loader(config.load_config).load_weights(model, config.model_config)
        state = ShardedStateLoader._filter_subtensors(model.state_dict())
    dtypes = {"torch.bfloat16": "BF16", "torch.float32": "F32", "torch.float8_e4m3fn": "F8_E4M3"}
    rows = {name: [dtypes[str(value.dtype)], list(value.shape), xxhash.xxh3_128_hexdigest(
        value.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())[:16]] for name, value in state.items()}
    print("\nRESULT " + json.dumps(rows), flush=True)
    os._exit(0)  # the process group of a rank that ends first would make the others wait


if __name__ == "__main__":
    main()
