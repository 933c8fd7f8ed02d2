# Where the number of a share comes from.
share() { shardtool split "$samples/tiny-llama" -o out --tp 2 --dry-run "$@" | grep shared; }
share --share 3/8
SLURM_ARRAY_TASK_ID=3 SLURM_ARRAY_TASK_COUNT=8 SLURM_ARRAY_TASK_MIN=0 share --share auto
SLURM_ARRAY_TASK_ID=3 SLURM_ARRAY_TASK_COUNT=1 SLURM_ARRAY_TASK_MIN=3 share --share auto/8
JOB_COMPLETION_INDEX=7 share --share auto/8
RANK=1 WORLD_SIZE=2 share --share auto
PMI_RANK=1 PMI_SIZE=4 share --share auto
PMI_RANK=1 PMI_SIZE=4 share
SLURM_ARRAY_TASK_ID=3 SLURM_ARRAY_TASK_COUNT=8 share || echo "an array is not taken unasked"
share --share 8/8
share --share 3
share --share x/3
share --share 0/0
share --share auto
JOB_COMPLETION_INDEX=7 share --share auto
SLURM_ARRAY_TASK_ID=3 SLURM_ARRAY_TASK_COUNT=2 SLURM_ARRAY_TASK_MIN=3 share --share auto
SLURM_ARRAY_TASK_ID=3 SLURM_ARRAY_TASK_COUNT=8 JOB_COMPLETION_INDEX=7 share --share auto/8
SLURM_ARRAY_TASK_ID=x share --share auto/8
true
