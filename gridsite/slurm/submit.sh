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
		id=${said%%"$newline"*}
		[ -n "$id" ] || return 1
		echo "$id" 1<>"$control/id"
	}
	echo "$id"
}

# failed says why sbatch did, and leaves nothing, unless the job may be in the queue all the same.
failed() {
	said=$(cat "$control/sbatch")
	say "$said" >&2
	case $said in
	*'timed out'* | *'Zero Bytes'* | *'Unexpected message'* | *'Connection reset'* | *'Broken pipe'*) exit 1 ;;
	esac
	mv "$dir" "$new" && rm -rf "$new"
	rmdir "$root/jobs" "$root" 2>/dev/null
	! away "$said" || exit 5
	exit 3
}

newline='
'
if [ -d "$control" ]; then
	! known || exit 0
else
	build
fi

said=$(call_sbatch "$@" -D "$dir" "$control/batch" 2>"$control/sbatch") || failed
id=${said##*job } # of a version that says more than the id
id=${id%%;*}
echo "$id" 1<>"$control/id"
echo "$id"
