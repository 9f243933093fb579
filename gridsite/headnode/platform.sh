# Prints kernel, machine and C library of this machine, one a line.
# The C library is glibcX.Y, musl, or unknown: never a guess.
uname -s && uname -m || exit 1
if v=$(getconf GNU_LIBC_VERSION 2>/dev/null); then
	echo "glibc${v#glibc }"
elif ldd --version 2>&1 | grep -qi musl; then
	echo musl
elif v=$(ldd --version 2>/dev/null | sed -n '1s/.* \([0-9][0-9]*\.[0-9][0-9]*\).*/\1/p') && [ -n "$v" ]; then
	echo "glibc$v"
else
	echo unknown
fi
