package corral

// A Shape is the request of one batch job: hosts of equal size for a walltime. A host runs one worker, which has all of
// the host's cpus, memory and GPUs.
type Shape struct {
	Hosts     int     `json:"hosts"`
	CPUs      int     `json:"cpus"`                 // per host
	MemoryMiB int     `json:"memory_mib,omitempty"` // per host; 0 in a request: machine × cpus ÷ the machine's cpus
	GPUs      int     `json:"gpus,omitempty"`       // per host
	Walltime  Seconds `json:"walltime_s"`           // from the job's start
}
