"""Tensors of shardtool as numpy's and torch's, which are imported when they are asked for. No bytes are copied."""

from ._errors import ResourceError

# Element types that numpy gets from ml_dtypes.
_ML_DTYPES = {
    "BF16": "bfloat16", "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2", "F8_E8M0": "float8_e8m0fnu",
    "F8_E4M3FNUZ": "float8_e4m3fnuz", "F8_E5M2FNUZ": "float8_e5m2fnuz",
}
_TORCH = {
    "BOOL": "bool", "U8": "uint8", "I8": "int8", "U16": "uint16", "I16": "int16", "U32": "uint32", "I32": "int32",
    "U64": "uint64", "I64": "int64", "F16": "float16", "BF16": "bfloat16", "F32": "float32", "F64": "float64",
    "C64": "complex64", "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2", "F8_E8M0": "float8_e8m0fnu",
    "F8_E4M3FNUZ": "float8_e4m3fnuz", "F8_E5M2FNUZ": "float8_e5m2fnuz",
}


def _refusal(framework, dtype, hint):
    error = ResourceError(f"{framework} has no elements of type {dtype}\n  help: {hint}")
    error.message, error.hint = f"{framework} has no elements of type {dtype}", hint
    return error


def to_numpy(tensor):
    import numpy

    array = numpy.asarray(memoryview(tensor))
    if tensor.dtype in _ML_DTYPES:
        try:
            import ml_dtypes
        except ImportError:
            raise _refusal("numpy", tensor.dtype, "pip install ml_dtypes, or use framework=\"pt\"") from None
        return array.view(getattr(ml_dtypes, _ML_DTYPES[tensor.dtype]))
    if tensor.dtype not in _TORCH:
        raise _refusal("numpy", tensor.dtype, "the tensor's buffer has the bytes")
    return array


def to_torch(tensor):
    import torch

    name = _TORCH.get(tensor.dtype)
    if name is None or not hasattr(torch, name):
        raise _refusal("torch", tensor.dtype, "the tensor's buffer has the bytes")
    dtype = getattr(torch, name)
    if tensor.nbytes == 0:
        return torch.empty(tensor.shape, dtype=dtype)
    return torch.frombuffer(tensor, dtype=dtype).reshape(tensor.shape)
