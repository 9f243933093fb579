package workflow

import "io"

// DefaultMaxBytes is the size limit of a workflow file, before and after decompression. A task takes 500 bytes in
// Corral's own output, and 2300 bytes in the published instances, which are indented: 800,000 tasks fit in both cases.
const DefaultMaxBytes = 2 << 30

// DefaultMaxValue is the size limit of one value in a file, such as a task. To read a value, a reader needs several
// times the value's size in memory. A task with 800,000 parents, and a file from each, takes about 50 MB.
const DefaultMaxValue = 64 << 20

// DefaultMaxTasks is the maximum number of tasks of a workflow. The size of the file is not a sufficient limit, because
// a task needs far more memory than its shortest text.
const DefaultMaxTasks = 2_000_000

// Options control how a file of any format is read. The zero value is suitable in most cases.
type Options struct {
	Strict   bool  // treat warnings as errors
	MaxBytes int64 // size limit before and after decompression; 0: DefaultMaxBytes
	MaxValue int64 // size limit of a value; 0: DefaultMaxValue
	MaxTasks int   // 0: DefaultMaxTasks

	// Env looks up an environment variable like os.LookupEnv, for formats whose files may refer to environment
	// variables. nil: no variable is set.
	Env func(name string) (value string, ok bool)

	// Open opens a file to which the workflow file refers, by an absolute path or a path relative to the workflow
	// file's folder. The contents count towards MaxBytes. If the file does not exist, the error must be fs.ErrNotExist.
	// nil: no such file exists.
	Open func(path string) (io.ReadCloser, error)
}
