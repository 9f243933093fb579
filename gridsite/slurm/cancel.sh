# cancel.sh ROOT GRACE <TAGS: returns when nothing of the jobs is left; all that have a tag as their name are meant.
# Prints TAG WHY for those of which something is, then "end". Jobs that never started cannot start any more.

exec 3<&0 </dev/null
root=$1 grace=$2
tags=$(cat <&3)
wall=0
newline='
'

# queue sets $jobs to JOBID STATE NAME of what has not ended under our tags.
queue() {
	slurm squeue -h -u "$me" -t all -o '%A %T %j' || exit 1
	jobs=$(say "$said" | unended | TAGS=$tags awk '
		BEGIN {n = split(ENVIRON["TAGS"], list, "\n"); for (i = 1; i <= n; i++) ours[list[i]] = 1}
		NF == 3 && $3 in ours')
}

# ids sets $ids to the first column of $jobs, without those named.
ids() {
	ids=
	for id in $(echo "$jobs" | sed 's/ .*//'); do
		case " $* " in
		*" $id "*) ;;
		*) ids="$ids $id" ;;
		esac
	done
}

# blame_all says in the directories who ends the jobs, and sets $running to the ids of those that started. The others
# cannot start any more.
blame_all() {
	running=
	for tag in $tags; do
		control=$root/jobs/$tag/.corral
		[ -d "$control" ] || continue
		dir=$root/jobs/$tag
		load || claim unstarted 0 || load || continue
		over || blame "cancel $grace"
		case $pid in
		unstarted) ;;
		*) over || running="$running ${pid%%.*}" ;;
		esac
	done
}

# end runs scancel, whose complaints about jobs that have just ended are none of ours.
end() { [ -z "$*" ] || slurm scancel "$@" >/dev/null 2>&1 || :; }

# gone waits until the queue has none of the jobs, for so many seconds after the grace.
gone() {
	clock
	until=$((now + 100 * $1)) naps=0
	while
		queue
		[ -n "$jobs" ]
	do
		clock
		[ "$now" -lt "$until" ] || return 1
		naps=$((naps + 1))
		case $naps in
		? | 1?) sleep 0.2 2>/dev/null || sleep 1 ;;
		*) sleep 1 ;;
		esac
	done
}

blame_all
queue
if [ -n "$jobs" ]; then
	ids $running
	end $ids
	live=
	for id in $running; do
		case "$newline$jobs" in
		*"$newline$id "*) live="$live $id" ;;
		esac
	done
	[ -z "$live" ] || end --batch --signal=TERM $live
	gone $((grace + 3)) || {
		ids
		end $ids
		gone 120 || :
	}
fi
for tag in $tags; do
	dir=$root/jobs/$tag
	control=$dir/.corral
	case "$jobs$newline" in
	*" $tag$newline"*) echo "$tag job $(echo "$jobs" | sed -n "s/ .* $tag\$//p" | head -n 1) does not end" ;;
	*)
		[ ! -d "$control" ] || finished || { settle && publish; }
		;;
	esac
done
echo end
