# list.sh ROOT: prints the tags of the jobs that have a directory, one a line, then "end". What is built or removed at
# this moment has a name that begins with a dot, and is not among them.

[ ! -d "$1/jobs" ] || ls -- "$1/jobs" || exit 1
echo end
