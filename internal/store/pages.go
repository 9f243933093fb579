package store

import (
	"unsafe"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// pagesKept is the number of database pages, 4 KiB each, that a connection can cache in one block of memory: the same
// number that SQLite caches by default.
const pagesKept = 500

// After each Write the readers' pages are out of date, and each reader drops its whole cache. If each page is a
// separate allocation, its memory is returned to the system and requested again; under many writes and reads this
// took a quarter of corrald's processor time. SQLite accepts the setting only before the first database is opened, so
// this function makes it. If SQLite rejects it, everything works but more slowly.
func init() {
	tls := libc.NewTLS()
	defer tls.Close()
	var none uintptr
	const words = 3
	list := libc.Xmalloc(tls, words*libc.Tsize_t(unsafe.Sizeof(none)))
	if list == 0 {
		return
	}
	defer libc.Xfree(tls, list)
	sqlite3.Xsqlite3_config(tls, sqlite3.SQLITE_CONFIG_PAGECACHE, libc.VaList(list, none, int32(0), int32(pagesKept)))
}
