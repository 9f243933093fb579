# cancel.sh ROOT TAG GRACE: returns when nothing of the job is left. Exit 1: something is.

dir=$1/jobs/$2 grace=$3
control=$dir/.corral
wall=0

fail() {
	echo "$1" >&2
	exit 1
}

# settled waits until the leader has gone, which it does by itself once the job has ended. A job that
# it was about to start when we first looked is stopped by a later round.
settled() {
	rounds=0
	while
		stop "$grace" || return 1
		locate
		[ "$where" = here ] && [ "$rounds" -lt 100 ]
	do
		rounds=$((rounds + 1)) naps=$rounds
		nap
	done
	bury "$grace"
}

[ -d "$control" ] || exit 0
load || claim unstarted 0 || load || fail 'the job has no leader' # claimed: nothing can start it now
! over || exit 0 # nothing was left when the status was published
locate
[ "$where" != elsewhere ] || fail "the job runs on $host, and this is $this_host"
blame "cancel $grace"
settled || fail "processes left:$left"
