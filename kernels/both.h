#pragma once

/// Marks op bodies that both compilers see, so that GPU code is tested on machines without a GPU.
#ifdef __CUDACC__
#define SHARDTOOL_BOTH __host__ __device__
#else
#define SHARDTOOL_BOTH
#endif
