package workflow

import "io"

// DefaultMaxBytes is the size limit of a workflow file, before and after decompression. A task takes 500 bytes as
// Corral writes it, and 2300 in the published instances, which are indented: so 800,000 tasks fit either way.
const DefaultMaxBytes = 2 << 30

// DefaultMaxValue is the size limit of one value in a file, such as a task. A reader holds the whole value in memory,
// several times over. A task with 800,000 parents, and a file from each, takes some 50 MB.
const DefaultMaxValue = 64 << 20

// DefaultMaxTasks is how many tasks a workflow may have. The size of the file bounds the tasks too little, because a
// task takes far more memory than its shortest text.
const DefaultMaxTasks = 2_000_000

// Options say how a file of any format is read. The zero value is right for most.
type Options struct {
	Strict   bool  // refuse what is otherwise a warning
	MaxBytes int64 // size limit before and after decompression; 0: DefaultMaxBytes
	MaxValue int64 // size limit of a value; 0: DefaultMaxValue
	MaxTasks int   // 0: DefaultMaxTasks

	// Env looks up a variable of the environment, as os.LookupEnv does, for formats whose files may refer to them.
	// nil: there are none.
	Env func(name string) (value string, ok bool)

	// Open opens a file that the workflow file names, by an absolute path or one relative to the workflow file's
	// folder. What it opens counts against MaxBytes. Where there is nothing its error is fs.ErrNotExist. nil: there is
	// nothing.
	Open func(path string) (io.ReadCloser, error)
}
