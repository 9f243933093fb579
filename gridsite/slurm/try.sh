# try.sh ROOT TAG GPUS OPTION... <SCRIPT: prints what sbatch says of a job that it does not take: "sbatch: Job 7 to
# start at 2026-11-22T02:58:00 ...", in UTC. Exit 3: it refuses, 5: Slurm was not reached.

tag=$2 gpus=$3
shift 3
said=$(TZ=UTC0 call_sbatch --test-only "$@" 2>&1) && say "$said" && exit
say "$said" >&2
! away "$said" || exit 5
exit 3
