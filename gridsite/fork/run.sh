# run.sh DIR WALLTIME GRACE: the leader of a job, first process of a session of its own.

dir=$1 wall=$2 grace=$3
control=$dir/.corral

# watch ends the job when its walltime, in seconds, is over.
watch() {
	sleep "$wall" || exit 1 # dismissed
	blame walltime
	stop "$grace"
}

lead() {
	birth "$$"
	claim "$$" "$born" || exit 0
	cd "$dir" || exit 1
	exec >>"$control/log" 2>&1 # closes the pipe on which submit.sh waits
	read -r by _ <"$control/ended-by"
	if [ "$by" = - ]; then
		[ "$wall" -eq 0 ] || watch &
		(become)
		echo "$? $(date +%s.%N)" 1<>"$control/ending"
	fi
	read -r by asked _ <"$control/ended-by"
	[ "$by" != cancel ] || grace=$asked
	stop "$grace" && dismiss && settle || exit 1 # the next poll tries again
	exec mv "$control/status.new" "$control/status"
}

lead
