"""Tensors of shardtool as numpy's and torch's, which are imported when they are asked for. No bytes are copied."""

from ._errors import ResourceError, refusal

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
# Several elements of the last axis that are one of torch's: its type, and their number.
_TORCH_PACKED = {"F4": ("float4_e2m1fn_x2", 2)}


def to_numpy(tensor):
    import numpy

    array = numpy.asarray(tensor)
    dtype = tensor.dtype
    if dtype in _ML_DTYPES:
        try:
            import ml_dtypes
        except ImportError:
            raise refusal(ResourceError, f"numpy has no elements of type {dtype}",
                          "pip install ml_dtypes, or use framework=\"pt\"") from None
        return array.view(getattr(ml_dtypes, _ML_DTYPES[dtype]))
    if dtype not in _TORCH:
        raise refusal(ResourceError, f"numpy has no elements of type {dtype}", "the tensor's buffer has the bytes")
    return array


def torch_form(dtype, shape):
    """(dtype, shape, elements) of a tensor in torch, one element of which has `elements` of the last axis."""
    import torch

    hint = "the tensor's buffer has the bytes"
    name, elements = _TORCH_PACKED.get(dtype, (_TORCH.get(dtype), 1))
    if name is None or not hasattr(torch, name):
        raise refusal(ResourceError, f"torch has no elements of type {dtype}", hint)
    shape = list(shape)
    if elements > 1:
        if not shape or shape[-1] % elements:
            raise refusal(ResourceError, f"torch holds {elements} {dtype} in one element, and the last axis of {shape} does not divide", hint)
        shape[-1] //= elements
    return getattr(torch, name), shape, elements


def to_torch(tensor):
    import torch

    dtype, shape, _ = torch_form(tensor.dtype, tensor.shape)
    if tensor.nbytes == 0:
        return torch.empty(shape, dtype=dtype)
    return torch.frombuffer(tensor, dtype=dtype).reshape(shape)
