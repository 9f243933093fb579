# try.sh ROOT TAG GPUS OPTION... <SCRIPT: has sbatch say whether it would take a job, and print NOW START: the time, and
# that at which it would start the job, in seconds since 1970, or "-". Exit 3: it refuses, 5: Slurm was not reached.

tag=$2 gpus=$3
shift 3
now=$(date +%s)
if said=$(call_sbatch --test-only "$@" 2>&1); then
	start=$(say "$said" | sed -n 's/.* to start at \([0-9]*-[0-9-]*T[0-9:]*\) .*/\1/p' | tail -n 1)
	[ -z "$start" ] || start=$(date -d "$start" +%s 2>/dev/null)
	say "$now ${start:--}"
	exit
fi
say "$said" >&2
! away "$said" || exit 5
exit 3
