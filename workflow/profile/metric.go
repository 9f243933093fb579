package profile

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// A Metric is a quantity that is measured for a task.
type Metric int

// These are the metrics. Profile.Add computes Utilization from CPU and Runtime unless Utilization is set.
const (
	Runtime     Metric = iota // seconds, from the start of the first process to the end of the last
	CPU                       // seconds, user and system, of all processes
	Utilization               // CPU ÷ Runtime; above 1 if several cpus are busy
	Memory                    // bytes, the peak
	Read                      // bytes
	Written                   // bytes
	Input                     // bytes, the total size of the input files
	Virtual                   // bytes, the peak of the address space
	metrics                   // the number of metrics
)

var metricNames = [metrics]string{
	"runtime_s", "cpu_s", "utilization", "memory_bytes", "read_bytes", "written_bytes", "input_bytes", "virtual_bytes",
}

func (m Metric) String() string { return metricNames[m] }

// parseMetric returns the metric with the given name.
func parseMetric(name string) (Metric, error) {
	if m := slices.Index(metricNames[:], name); m >= 0 {
		return Metric(m), nil
	}
	return 0, fmt.Errorf("metric %.40q must be one of %s", name, strings.Join(metricNames[:], ", "))
}

// Values holds the metrics of one task. In the zero value no metric is set.
type Values struct {
	set   uint16 // bit m: metric m was measured
	value [metrics]float64
}

// Set records the measured value v of metric m, in the unit of the metric.
func (x *Values) Set(m Metric, v float64) {
	x.set |= 1 << m
	x.value[m] = v
}

// Get returns the value of metric m; ok is false if m was not measured.
func (x *Values) Get(m Metric) (v float64, ok bool) {
	return x.value[m], x.set&(1<<m) != 0
}

// largest exceeds any possible measured value: it is 300 billion years in seconds, or 10 exabytes in bytes.
const largest = 1e19

// checkValue returns an error for a value that no measurement can produce.
func checkValue(v float64) error {
	if !(v >= 0 && v <= largest) { // also true for NaN
		return fmt.Errorf("%v is not a number from 0 to %g", v, float64(largest))
	}
	return nil
}

func (x *Values) validate() error {
	for m := range metrics {
		if v, ok := x.Get(m); ok {
			if err := checkValue(v); err != nil {
				return fmt.Errorf("%s: %w", m, err)
			}
		}
	}
	return nil
}

// MarshalJSON returns a JSON object with the metrics that were measured, by name.
func (x Values) MarshalJSON() ([]byte, error) {
	object := make(map[string]float64)
	for m := range metrics {
		if v, ok := x.Get(m); ok {
			object[m.String()] = v
		}
	}
	return json.Marshal(object)
}

// UnmarshalJSON parses the output of MarshalJSON.
func (x *Values) UnmarshalJSON(b []byte) error {
	var object map[string]float64
	if err := json.Unmarshal(b, &object); err != nil {
		return fmt.Errorf("%.40s is not an object with metrics", b)
	}
	*x = Values{}
	for name, v := range object {
		m, err := parseMetric(name)
		if err != nil {
			return err
		}
		x.Set(m, v)
	}
	return nil
}
