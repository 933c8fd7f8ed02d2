#pragma once

/// Marks op bodies that both compilers see: what a kernel computes on a GPU is tested on machines
/// without one.
#ifdef __CUDACC__
#define SHARDTOOL_BOTH __host__ __device__
#else
#define SHARDTOOL_BOTH
#endif
