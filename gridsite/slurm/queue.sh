# What the queue is like of $partition, the default one if empty. Jobs are those that Slurm shows to the user.

# named prints the partition and its state, up or not.
named() {
	if [ -z "$partition" ]; then
		all=$(soon sinfo -h -o '%P') || return
		partition=$(printf '%s\n' "$all" | sed -n 's/\*$//p' | head -n 1)
	fi
	[ -z "$partition" ] || soon sinfo -h -p "$partition" -o '%R|%a' | sort -u
}

# jobs prints STATE|CPUS|LIMIT|ELAPSED|START|ID|ARRAY|QUEUE|NODES|SHARED|MEMORY|ON|AFTER|REASON|. of each job that runs on the
# partition's nodes, or waits in a partition that has some of them, those of the highest priority first, each element of
# an array by itself. Suspended jobs are left out: their processors are others'. START is in seconds since 1970. The dot
# shows that a line is whole.
jobs() (
	SLURM_TIME_FORMAT=%s
	export SLURM_TIME_FORMAT
	nodes=$(soon sinfo -h -p "$partition" -o '%N') || exit
	nodes=$(printf '%s\n' "$nodes" | paste -s -d , -)
	[ -n "$nodes" ] || exit 0
	rivals=$(soon sinfo -a -h -n "$nodes" -o '%R') || exit
	rivals=$(printf '%s\n' "$rivals" | sort -u | paste -s -d , -)
	format='%T|%C|%l|%M|%S|%A|%F|%P|%D|%h|%m|%N|%E|%r|.'
	soon squeue -h -a -r -w "$nodes" -t RUNNING,COMPLETING,CONFIGURING,RESIZING,STAGE_OUT -o "$format" &&
		soon squeue -h -a -r -p "$rivals" -t PENDING -S '-p,i' -o "$format"
)

# nodes prints NODE|PARTITION|CPUS|MEMORY|ALLOCATED/IDLE/OTHER/TOTAL|. of each node of the partition in each partition that
# has it.
nodes() {
	nodes=$(soon sinfo -h -p "$partition" -o '%N') || return
	nodes=$(printf '%s\n' "$nodes" | paste -s -d , -)
	[ -z "$nodes" ] || soon sinfo -a -h -N -n "$nodes" -o '%N|%R|%c|%m|%C|.'
}

# reservations prints what scontrol says of each reservation, with times in seconds since 1970.
reservations() (
	SLURM_TIME_FORMAT=%s
	export SLURM_TIME_FORMAT
	soon scontrol -o show reservation
)

# A section is a process of its own: the name is found before.
row=$(named 2>/dev/null)
section name named
[ -n "$partition" ] || partition=${row%%|*}
section processors soon sinfo -h -p "$partition" -o '%C'
section nodes nodes
section jobs jobs
section reservations reservations
section config soon scontrol show config
