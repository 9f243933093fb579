# What the scripts of the fork dialect share. POSIX sh, /proc of Linux, and the commands awk, date,
# head, ln, mkdir, mv, rm, sed, setsid, sleep, tail, tar, tr: no binary of ours. Results are passed in
# variables, because a command substitution costs a process.
#
# A job is two sessions. The keepers' session: the leader (run.sh), whose pid and time of birth are the
# job's id, and its watchdog. The job's own session: what the user asked for, which therefore may
# signal its whole process group, with SIGKILL even, without hurting the leader. Only the job's own
# processes have CORRAL_JOB_DIR in their environment; keepers have CORRAL_JOB_TAG alone.
#
# $dir is the job's directory, $control our part of it:
#   run        this file and run.sh          script    sets the argument vector
#   leader     PID BIRTH BOOT STARTED DEADLINE HOST; linked once, which is the right to start the job
#   job        PID BIRTH of the first process of the job's own session
#   ended-by   who is ending the job: "walltime", or "cancel GRACE"
#   ending     EXIT ENDED of the job's first process
#   status     STARTED ENDED EXIT KILLED; made last, by a rename, when nothing of the job is left
# A "-" stands for what is not known yet. job, ended-by, ending and status.new come padded and are
# overwritten in place (1<>), so that a full disk or an exhausted quota cannot swallow a job's end.

LC_ALL=C
export LC_ALL

read -r this_boot </proc/sys/kernel/random/boot_id
read -r this_host </proc/sys/kernel/hostname

# clock sets $now, in hundredths of a second since the machine's boot.
clock() {
	read -r now _ </proc/uptime
	now=${now%.*}${now#*.}
}

# nap waits a little, more as a loop goes on; $naps counts.
nap() {
	naps=$((naps + 1))
	pause=0.02
	[ "$naps" -lt 10 ] || pause=0.2
	sleep "$pause" 2>/dev/null || sleep 1
}

# birth PID sets $born to when that process started, in ticks since boot, empty if it is gone or a
# zombie. The name in parentheses may hold anything, so the fields are counted from its end.
birth() {
	born=
	{ read -r stat <"/proc/$1/stat"; } 2>/dev/null || return 0
	set -- ${stat##*") "}
	case $1 in
	Z | X) ;;
	*) born=${20} ;;
	esac
}

# load reads the leader file, and fails if the job has no leader yet.
load() {
	{ read -r pid since boot started deadline host <"$control/leader"; } 2>/dev/null
}

# claim PID BIRTH makes that process the leader, and fails if another one is: link(2) is atomic, also
# on NFS, where only the file's content tells whether a link that "failed" was ours.
claim() {
	at=$(date +%s.%N)
	until=-
	[ "$wall" -eq 0 ] || until=$((${at%%.*} + wall + grace + 60))
	echo "$1 $2 $this_boot $at $until $this_host" >"$control/leader.$1" || return 1
	ln "$control/leader.$1" "$control/leader" 2>/dev/null
	load && [ "$pid $since" = "$1 $2" ]
}

# locate sets $where: "here" while the leader lives, "gone", or "elsewhere" if it was started on
# another machine that shares this directory and may live there. After the deadline its watchdog has
# ended it, wherever that was.
locate() {
	where=gone
	if [ "$boot" = "$this_boot" ]; then
		birth "$pid"
		[ "$born" != "$since" ] || where=here
	elif [ "$host" != "$this_host" ]; then
		[ "$deadline" != - ] && [ "$(date +%s)" -gt "$deadline" ] || where=elsewhere
	fi
}

# session PID BIRTH sets $sid to the session that this process leads or led, if it can still have
# members. While it has, its number is not given away, so a stranger under that number means none; so
# does another boot, or machine.
session() {
	sid=-
	[ "$boot" = "$this_boot" ] || return 0
	case $1 in
	'' | *[!0-9]* | 0 | 1) return 0 ;;
	esac
	birth "$1"
	[ -n "$born" ] && [ "$born" != "$2" ] || sid=$1
}

# collect FILE... adds to $left the live processes that are in session $sid, if their /proc/PID/stat is
# among the files, or carry the job's mark, if their /proc/PID/environ is; never this shell. Those
# that we may not read belong to others. A look that did not happen, for want of awk or because the
# arguments were too many, must not pass for one that found nothing.
# (grep would do for the mark, but busybox's stops at a NUL.)
collect() {
	found=$(head -n 99999 "$@" 2>/dev/null | tr '\0' '\n' | MARK="CORRAL_JOB_DIR=$dir" SID=$sid awk '
		/^==> \/proc\// {split($2, path, "/"); seen = 1; next}
		path[4] == "environ" && $0 == ENVIRON["MARK"] {print path[3]}
		path[4] == "stat" && sub(/.*\) [^ZX] /, "") && $3 == ENVIRON["SID"] {print path[3]}
		END {if (seen) print "seen"}')
	case $found in
	*seen) ;;
	*) left="$left unseen" ;;
	esac
	for p in ${found%seen}; do
		case " $$ $left " in
		*" $p "*) continue ;;
		esac
		! kill -0 "$p" 2>/dev/null || left="$left $p" # those that only looked for us are gone by now
	done
}

# look sets $left to all processes of the job but its keepers.
look() {
	left= jobpid= jobborn=
	{ read -r jobpid jobborn _ <"$control/job"; } 2>/dev/null
	session "$jobpid" "$jobborn"
	collect /proc/[0-9]*/stat /proc/[0-9]*/environ
}

# stop GRACE ends the job's processes: they are told once with SIGTERM, and killed when GRACE seconds
# are over. Two looks in a row must find nothing, since a process that forks and exits while
# we look can slip through one. It fails if something is left 10 s after the grace.
stop() {
	told= quiet=0 naps=0
	clock
	begin=$now
	while
		look
		[ -z "$left" ] && quiet=$((quiet + 1)) || quiet=0
		[ "$quiet" -lt 2 ]
	do
		[ "$quiet" -eq 0 ] || continue
		clock
		age=$((now - begin - 100 * $1))
		[ "$age" -lt 1000 ] || return 1
		if [ "$age" -ge 0 ]; then kill -KILL $left 2>/dev/null; else tell; fi
		nap
	done
}

# tell sends SIGTERM to those of $left that have not had it: a second one means "at once" to many.
# While the job's first process lives, only that one is told: it ends the others in its own order, and
# a pilot can then say of each task why it ended.
tell() {
	whom=$left
	case " $left " in
	*" ${jobpid:--} "*) whom=$jobpid ;;
	esac
	for p in $whom; do
		case " $told " in
		*" $p "*) continue ;;
		esac
		kill -TERM "$p" 2>/dev/null
		told="$told $p"
	done
}

# dismiss kills the keepers, except this shell.
dismiss() {
	naps=0
	while
		left=
		session "$pid" "$since"
		collect /proc/[0-9]*/stat
		[ -n "$left" ]
	do
		[ "$naps" -lt 50 ] || return 1
		kill -KILL $left 2>/dev/null
		nap
	done
}

# become turns this shell into the job, in a session of its own. A command that is not there or may not be
# run is left to the shell, whose exit status for it, 127 or 126, is the same everywhere; that of setsid is not.
become() {
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

# blame WHO records who is ending the job, if nobody is and it has not ended by itself.
blame() {
	read -r code _ <"$control/ending"
	read -r by _ <"$control/ended-by"
	[ "$code $by" != '- -' ] || echo "$1" 1<>"$control/ended-by"
}

# settle writes status.new from what is known of the job's end.
settle() {
	read -r code ended _ <"$control/ending"
	read -r by _ <"$control/ended-by"
	case $by in
	walltime | cancel) ;;
	*) by=- ;;
	esac
	if [ "$code" = - ]; then
		ended=$(date +%s.%N)
		[ "$by" != - ] || by=disappeared
	fi
	echo "$started $ended $code $by" 1<>"$control/status.new"
}

# over sets $result to the status, and fails if there is none yet.
over() {
	{ read -r result <"$control/status"; } 2>/dev/null
}

# bury ends what a leader that is gone left behind, and publishes the status in its place.
bury() {
	dismiss && stop "$1" && { over || { settle && mv "$control/status.new" "$control/status"; }; }
}
