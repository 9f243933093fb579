# run.sh DIR WALLTIME GRACE: the leader of a job, first process of a session of its own.

dir=$1 wall=$2 grace=$3
control=$dir/.corral

# watch ends the job when its walltime, in seconds, is over.
watch() {
	sleep "$wall" || exit 1 # dismissed
	blame walltime
	stop "$grace"
}

# launch becomes the job. A command that is not there or may not be run is left to the shell, whose
# exit status for it, 127 or 126, is the same everywhere; that of setsid is not.
launch() {
	read -r self _ </proc/self/stat
	birth "$self"
	echo "$self $born" 1<>"$control/job"
	. "$control/script"
	unset LC_ALL OLDPWD
	CORRAL_JOB_DIR=$dir
	export CORRAL_JOB_DIR
	exec >"$dir/stdout" 2>"$dir/stderr"
	[ -x "$1" ] && [ ! -d "$1" ] || exec "$@"
	exec setsid "$@"
}

lead() {
	birth "$$"
	claim "$$" "$born" || exit 0
	cd "$dir" || exit 1
	exec >>"$control/log" 2>&1 # closes the pipe on which submit.sh waits
	read -r by _ <"$control/ended-by"
	if [ "$by" = - ]; then
		[ "$wall" -eq 0 ] || watch &
		(launch)
		echo "$? $(date +%s.%N)" 1<>"$control/ending"
	fi
	read -r by asked _ <"$control/ended-by"
	[ "$by" != cancel ] || grace=$asked
	stop "$grace" && dismiss && settle || exit 1 # the next poll tries again
	exec mv "$control/status.new" "$control/status"
}

lead
