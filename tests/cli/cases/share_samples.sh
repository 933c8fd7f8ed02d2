# The samples for schedulers, with the variables and modules that they would find.
shardtool -q split "$samples/tiny-llama" -o lone --tp 4
array() { SLURM_ARRAY_TASK_ID=$1 SLURM_ARRAY_TASK_COUNT=$2 bash "$samples/slurm-array.sh" "${@:3}"; }
for task in 0 1 3; do array $task 4 split "$samples/tiny-llama" -o slurm --tp 4 > /dev/null; done
shardtool finish slurm 2>&1 | head -1
SHARES=4 array 2 1 split "$samples/tiny-llama" -o slurm --tp 4 | grep done
diff -r lone slurm && echo equal
bash "$samples/slurm-array.sh"

# The image's program with the arguments of the pods, with this folder in place of the volume.
grep ENTRYPOINT "$samples/ci/Dockerfile"
words=$(sed -n 's/^ *args: \[\(.*\)\]$/\1/p' "$samples/k8s-indexed-job.yaml" | tr -d ',"')
words=${words//\/data\/model/$samples/tiny-llama}
words=${words//\/data\/out/k8s}
for index in 7 6 5 4 3 2 1 0; do JOB_COMPLETION_INDEX=$index shardtool -q ${words//--tp 8/--tp 4}; done
diff -r lone k8s && echo equal
