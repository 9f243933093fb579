#!/bin/sh
# The tasks of one job, one after another, each in a folder of its own. The first that fails ends the job with its exit
# status.
top=$(pwd)
number=0

# begin ID: a task begins, without what a try before left in its folder.
begin() {
	task=$1
	number=$((number + 1))
	here=$top/.corral-tasks/$number
	rm -rf -- "$here" && mkdir -p -- "$here" && cd -- "$here" || fail $?
}

# give FILE NAME: the task finds a file of the job under a name.
give() {
	mkdir -p -- "$(dirname -- "$2")" && ln -s -- "$top/$1" "$2" || fail $?
}

# copy FILE NAME: likewise, of a file that the task changes.
copy() {
	mkdir -p -- "$(dirname -- "$2")" && cp -p -- "$top/$1" "$2" || fail $?
}

# keep NAME FILE: what the task made becomes a file of the job.
keep() {
	mkdir -p -- "$(dirname -- "$top/$2")" && mv -f -- "$1" "$top/$2" || fail 1
}

# end: nothing else of the task is kept.
end() {
	cd -- "$top" && rm -rf -- "$here"
}

# fail STATUS: the job ends. Where a file is missing that the job should bring, its scheduler would hold it: an empty one
# is there instead, which nobody reads because the job has failed.
fail() {
	status=$1
	[ "$status" -ne 0 ] || status=1
	echo "task $task failed with exit status $status" >&2
	placeholders
	exit "$status"
}

# placeholder FILE
placeholder() {
	[ -e "$top/$1" ] || { mkdir -p -- "$(dirname -- "$top/$1")" && : >"$top/$1"; }
}
