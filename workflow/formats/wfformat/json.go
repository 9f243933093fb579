package wfformat

import "encoding/json"

// The parts of a WfFormat 1.5 file, for reading and writing; version14.go contains those of version 1.4.
type (
	specTask struct {
		Name     string     `json:"name"`
		ID       string     `json:"id"`
		Parents  []string   `json:"parents"`
		Children []string   `json:"children"`
		Inputs   []string   `json:"inputFiles,omitempty"`
		Outputs  []string   `json:"outputFiles,omitempty"`
		Corral   *extension `json:"x-corral,omitempty"`
	}

	dataFile struct {
		ID   string `json:"id"`
		Size amount `json:"sizeInBytes"`
	}

	execTask struct {
		ID         string   `json:"id"`
		Runtime    *seconds `json:"runtimeInSeconds"` // nil: missing
		ExecutedAt string   `json:"executedAt,omitempty"`
		Command    *command `json:"command,omitempty"`
		Cores      *float64 `json:"coreCount,omitempty"`
		AvgCPU     float64  `json:"avgCPU,omitempty"` // percent of one processor
		Read       amount   `json:"readBytes,omitempty"`
		Written    amount   `json:"writtenBytes,omitempty"`
		Memory     amount   `json:"memoryInBytes,omitempty"`
		Machines   []string `json:"machines,omitempty"`

		// These fields are recognized, but not kept.
		Energy   json.Number `json:"energyInKWh,omitempty"`
		Power    json.Number `json:"avgPowerInW,omitempty"`
		Priority json.Number `json:"priority,omitempty"`
	}

	command struct {
		Program   string   `json:"program,omitempty"`
		Arguments []string `json:"arguments,omitempty"`
	}
)

const (
	version      = "1.5" // version of WfFormat that is written
	version14    = "1.4" // version that is also supported for reading
	extensionKey = "x-corral"
)

// extension holds the data that a run needs and WfFormat lacks; docs/x-corral.schema.json describes it. A pointer
// distinguishes a field that is 0 from a missing field. Unknown fields are refused (document.compare): the extension
// belongs to Corral, so an unknown field is a typing error that would lead to an incorrect run.
type extension struct {
	ID        string            `json:"id,omitempty"`
	MemoryMiB *int              `json:"memory_mib,omitempty"`
	GPUs      int               `json:"gpus,omitempty"`
	DiskMiB   int               `json:"disk_mib,omitempty"`
	Estimate  *seconds          `json:"estimate_s,omitempty"`
	Instant   bool              `json:"instant,omitempty"`
	Retries   *int              `json:"retries,omitempty"`
	Timeout   seconds           `json:"timeout_s,omitempty"`
	Env       map[string]string `json:"env,omitempty"`
	Stdin     string            `json:"stdin,omitempty"`
	Stdout    string            `json:"stdout,omitempty"`
	Stderr    string            `json:"stderr,omitempty"`
	Names     map[string]string `json:"names,omitempty"`
	Control   *control          `json:"control,omitempty"`
}
