#!/usr/bin/env bash
# usage: cuda_test.sh SOURCE
# An nvcc that does not know an architecture leaves the kernels out, and the configuration says why.
set -euo pipefail
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

cat >"$scratch/nvcc" <<'EOF'
#!/bin/bash
case " $* " in
  *compute_133*) echo "nvcc fatal   : Unsupported gpu architecture 'compute_133'" >&2; exit 1 ;;
esac
exit 1
EOF
chmod +x "$scratch/nvcc"
cat >"$scratch/CMakeLists.txt" <<EOF
cmake_minimum_required(VERSION 3.25)
project(kernels CXX)
include($1/lib/cmake/ShardtoolCuda.cmake)
EOF
cmake -G Ninja -S "$scratch" -B "$scratch/build" -DCMAKE_CUDA_COMPILER="$scratch/nvcc" \
  -DSHARDTOOL_CUDA_ARCH="80-real;133" >"$scratch/said" 2>&1 || { cat "$scratch/said"; exit 1; }
grep -q "Without kernels for GPUs: nvcc fatal .*'compute_133'" "$scratch/said"
