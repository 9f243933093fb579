# poll.sh ROOT <TAGS: prints one line for each tag that has a job, then "end".
#   TAG ID running STARTED
#   TAG ID ended STARTED ENDED EXIT KILLED

exec 3<&0 </dev/null

# report tells of one job. The leader exits by publishing the status, so when it is found gone without
# one, a second look at the status decides between an end and a disappearance.
report() {
	if ! over; then
		locate
		[ "$where" != gone ] || over || bury 0
		over || result=
	fi
	if [ -n "$result" ]; then echo "$tag $pid.$since ended $result"; else echo "$tag $pid.$since running $started"; fi
}

while read -r tag <&3; do
	dir=$1/jobs/$tag
	control=$dir/.corral
	! load || report
done
echo end
