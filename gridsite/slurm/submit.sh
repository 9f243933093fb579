# submit.sh ROOT TAG NEW GPUS OPTION... <TAR: prints the job's id. Exit 3: refused, 5: Slurm was not reached; nothing
# was done, and nothing is left. TAR is as in fork/submit.sh; the OPTIONs are sbatch's.

root=$1 tag=$2 gpus=$4
dir=$root/jobs/$tag
control=$dir/.corral
new=$root/jobs/$3
shift 4

# known prints the id if the job is already in the queue, or was, or must not get there any more.
known() {
	read -r id _ <"$control/id"
	if [ "$id" = - ] && load; then id=${pid%%.*}; fi
	[ "$id" != - ] || {
		slurm squeue -h -u "$me" -t all -n "$tag" -o %A || exit 1
		id=$(say "$said" | grep '^[0-9][0-9]*$' | head -n 1)
		[ -n "$id" ] || return 1
		echo "$id" 1<>"$control/id"
	}
	echo "$id"
}

# failed STATUS says why sbatch did, and leaves nothing, unless the job may be in the queue all the same: sbatch was
# killed, or it sent its request and did not understand the answer.
failed() {
	said=$(cat "$control/sbatch")
	say "$said" >&2
	[ "$1" -le 128 ] || exit 1
	case $said in
	*'timed out'* | *'Zero Bytes'* | *'Unexpected message'* | *'Connection reset'* | *'Broken pipe'* | *'send failure'* | \
		*'receive failure'* | *'shutdown failure'* | *'Header lengths'* | *'decode failed'*) exit 1 ;;
	esac
	mv "$dir" "$new" && rm -rf "$new"
	rmdir "$root/jobs" "$root" 2>/dev/null
	! away "$said" || exit 5
	exit 3
}

if [ -d "$control" ]; then
	! known || exit 0
else
	build
fi

said=$(call_sbatch "$@" -D "$dir" "$control/batch" 2>"$control/sbatch") || failed "$?"
# "7" or "7;CLUSTER" with --parsable, else "Submitted batch job 7". Before that a site's own sbatch may say anything.
id=$(say "$said" | sed -n 's/^.*Submitted batch job //; s/^\([0-9][0-9]*\)\([; ].*\)*$/\1/p' | tail -n 1)
[ -n "$id" ] || { say "sbatch says no id, but $(say "$said" | tail -n 1)" >&2 && exit 1; }
echo "$id" 1<>"$control/id"
echo "$id"
