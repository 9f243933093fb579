
# What the scripts share that run on the head node.

# Nothing in the user's environment changes what Slurm's commands do, and print.
for name in $(env | sed -n 's/^\(S\(BATCH\|QUEUE\|CANCEL\|ACCT\)_[A-Z_]*\)=.*/\1/p'); do unset "$name"; done
unset SLURM_TIME_FORMAT SLURM_CLUSTERS
me=$(id -un)

command -v sbatch >/dev/null || { echo "$PATH" >&2 && exit 6; }

# say prints lines as they are. To the echo of some shells backslashes mean something, "\c" even the end of it all; and
# names of jobs are anybody's.
say() { printf '%s\n' "$*"; }

# slurm COMMAND... is what it prints, in $said. The script ends if Slurm does not answer: with 5 if nothing was done.
slurm() {
	said=$("$@" 2>&1) && return
	say "$said" >&2
	! away "$said" || exit 5
	return 1
}

# away says whether Slurm's controller was not reached at all.
away() {
	case $1 in
	*'Unable to contact slurm controller'* | *'Protocol authentication error'* | *'Munge encode failed'* | \
		*'configuration source'* | *'standby mode'* | *'Connection refused'*) ;;
	*) return 1 ;;
	esac
}

# unended leaves of lines "JOBID STATE ..." those of jobs that have not ended. Of a state that we do not know we do not say so.
unended() {
	grep '^[0-9][0-9]* [A-Z]' |
		grep -v -E '^[0-9]+ (BOOT_FAIL|CANCELLED|COMPLETED|DEADLINE|FAILED|NODE_FAIL|OUT_OF_MEMORY|PREEMPTED|REVOKED|TIMEOUT)( |$)'
}
