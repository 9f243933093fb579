# run.sh DIR WALLTIME GRACE: the batch script of a job, on its first node.

dir=$1 wall=$2 grace=$3
control=$dir/.corral

# watch ends the job when its walltime, in seconds, is over; Slurm would, to the minute, and has no patience.
watch() {
	trap 'kill "$nap"; exit' TERM
	sleep "$wall" &
	nap=$!
	wait "$nap" || exit
	trap '' TERM
	blame walltime
	stop "$grace"
}

# asked is what happens on SIGTERM, which cancel.sh sends when it has said so in ended-by, and Slurm before it kills
# all: at the end of the walltime, to make room for others, or because somebody cancelled the job.
asked() {
	trap '' TERM
	interrupted=1
	asked=1
	blame site
	read -r by patience _ <"$control/ended-by"
	[ "$by" != cancel ] || grace=$patience
	stop "$grace" &
}

# noticed is what happens on a signal that the user or the site had Slurm send to the batch script some time before the
# end, with --signal=B:USR1@60, say. The job's first process is told; nobody ends it yet.
noticed() {
	interrupted=1
	[ -z "${child-}" ] || kill "-$1" "$child" 2>/dev/null
}

# name_nodes lets the job know its nodes by Slurm's names, itself first, and how to start something on the others.
name_nodes() {
	CORRAL_NODES=${SLURMD_NODENAME-}
	export CORRAL_NODES
	[ "${SLURM_JOB_NUM_NODES:-1}" -gt 1 ] || return 0
	CORRAL_NODES=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | tr '\n' ' ')
	CORRAL_NODES=${CORRAL_NODES% }
	CORRAL_FANOUT=ssh
	! command -v srun >/dev/null || CORRAL_FANOUT=srun
	export CORRAL_FANOUT
}

# again is a second start of the same job, which only the site's own hand can have ordered: what ran before is gone.
again() {
	load && [ "${pid%%.*}" = "$SLURM_JOB_ID" ] && [ "${SLURM_RESTART_COUNT:-0}" -gt 0 ] && ! over || exit 0
	echo preempted 1<>"$control/ended-by"
	settle && publish
	exit 0
}

lead() {
	birth "$$"
	claim "$SLURM_JOB_ID.$$" "$born" || again
	asked=
	trap asked TERM
	trap 'noticed USR1' USR1
	trap 'noticed USR2' USR2
	trap 'noticed XCPU' XCPU
	exec >>"$control/log" 2>&1
	cd "$dir" || exit 1
	[ -z "${SLURMD_NODENAME-}" ] || echo "$SLURMD_NODENAME" 1<>node
	[ "$wall" -eq 0 ] || watch &
	watcher=$!
	name_nodes
	become &
	child=$!
	while
		interrupted=
		wait "$child"
		code=$?
		[ -n "$interrupted" ]
	do :; done
	echo "$code $(date +%s.%N)" 1<>"$control/ending" || exit 1 # the directory is away: Slurm is asked how this ended
	trap '' TERM
	read -r by patience _ <"$control/ended-by" || exit 1
	[ "$by" != cancel ] || grace=$patience
	stop "$grace" || exit 1 # then Slurm ends it, and the next poll finds out
	[ "$wall" -eq 0 ] || kill "$watcher" 2>/dev/null
	case $by$asked in
	site* | -1) ;; # Slurm is asked why, also if the directory was away when the signal came
	*) settle && publish ;;
	esac
}

lead
