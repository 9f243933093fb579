#!/bin/sh
# run.sh WORKFLOW [FLAGS OF corral plan]: plan pilots for a workflow, ask for them, run it on them, let them go.
#
# Whatever ends this script, a failing run, Ctrl-C or a scheduler's SIGTERM, the pilots are let go. After kill -9 they
# leave when their walltimes are over, at the latest.
set -eu
workflow=${1:?which workflow? run.sh WORKFLOW [FLAGS OF corral plan]}
shift

# step runs a command that a signal ends at once. A shell hears of signals only after what it waits for in the
# foreground, which may be hours.
child=
step() {
	"$@" &
	child=$!
	wait "$child"
	child=
}

plan=
release() {
	status=$?
	trap '' HUP INT TERM # once is enough
	trap - EXIT
	[ -z "$child" ] || { kill "$child" && wait "$child"; } 2>/dev/null || true
	[ -z "$plan" ] || corral plan release "$plan" --wait --timeout 10m -q >&2 || [ "$status" -ne 0 ] || status=1
	exit "$status"
}
trap release EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

# Exit code 3 means that no plan reaches the goal: such a plan has an id, too, and nothing to let go.
made=$(corral plan "$workflow" "$@" -q)
plan=$made
step corral plan apply "$plan" --wait --timeout 1h -q >&2
step corral run "$workflow" --label plan="$plan" --cancel-on-interrupt -q
