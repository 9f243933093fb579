# try.sh ROOT TAG GPUS OPTION... <SCRIPT: has sbatch say whether it would take a job. Exit 3: it refuses, 5: Slurm was
# not reached.

tag=$2 gpus=$3
shift 3
said=$(call_sbatch --test-only "$@" 2>&1) && exit
say "$said" >&2
! away "$said" || exit 5
exit 3
