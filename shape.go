package corral

// A Shape is the request of one batch job: hosts of equal size for a walltime. A host runs one worker with these cpus,
// this memory and these GPUs.
type Shape struct {
	Hosts     int     `json:"hosts"`
	CPUs      int     `json:"cpus"`                 // per host
	MemoryMiB int     `json:"memory_mib,omitempty"` // per host; 0: the machine's × cpus ÷ its cpus, if known
	GPUs      int     `json:"gpus,omitempty"`       // per host
	Walltime  Seconds `json:"walltime_s"`           // from the job's start
}
