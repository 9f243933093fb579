# What the queue is like of $partition, the default one if empty. Jobs are those that Slurm shows to the user.
[ -n "$partition" ] || partition=$(soon sinfo -h -o '%P' 2>/dev/null | sed -n 's/\*$//p' | head -n 1)

# jobs prints STATE|CPUS|LIMIT|ELAPSED|START|REASON of each job of the partition, those of the highest priority
# first, each element of an array by itself. START is in seconds since 1970.
jobs() {
	(
		SLURM_TIME_FORMAT=%s
		export SLURM_TIME_FORMAT
		soon squeue -h -a -r -p "$partition" -t RUNNING,COMPLETING,SUSPENDED,PENDING -S '-p,i' -o '%T|%C|%l|%M|%S|%r'
	)
}

section name printf '%s\n' "$partition"
section processors soon sinfo -h -p "$partition" -o '%C'
section jobs jobs
section config soon scontrol show config
