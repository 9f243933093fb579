package server

import (
	"encoding/json"
	"reflect"
	"strconv"
	"time"

	"github.com/corral-pilot/corral"
)

// bounds are the least and the most that a number may be, in the unit of its field.
type bounds struct {
	least, most float64
	orZero      bool // 0 is allowed, too: it stands for none, or for a default
}

// maxSpan is how long a walltime may be, and how far ahead a start may be planned.
const maxSpan = corral.Seconds(366 * 24 * time.Hour)

// ranges :: number of a request, by its name in JSON → what it may be. openapi.yaml says the same.
var ranges = map[string]bounds{
	"hosts":             {least: 1, most: 10_000},
	"cpus":              {least: 1, most: 1 << 16},
	"memory_mib":        {most: 1 << 30}, // 1 PiB
	"gpus":              {most: 1 << 16},
	"retries":           {most: 1000},
	"walltime_s":        {least: 10, most: maxSpanS},
	"idle_s":            {least: 1, most: maxSpanS, orZero: true},
	"overlap_s":         {most: maxSpanS},
	"queue_timeout_s":   {least: 1, most: maxSpanS, orZero: true},
	"stall_s":           {most: maxSpanS},
	"default_runtime_s": {most: maxSpanS},
	"max_queued":        {most: 1_000_000},
	"max_running":       {most: 1_000_000},
}

const maxSpanS = float64(maxSpan) / float64(time.Second)

func (b bounds) has(n float64) bool { return n >= b.least && n <= b.most || b.orZero && n == 0 }

func (b bounds) String() string {
	s := "from " + digitsOf(b.least) + " to " + digitsOf(b.most)
	if b.orZero {
		return "that is 0, or " + s
	}
	return s
}

func digitsOf(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

// outside says that a value is; v is what it was read into, unless err kept it from that. People read spans of time
// as durations.
func (b bounds) outside(place string, v reflect.Value, value json.RawMessage, err error) error {
	span, isSpan := v.Interface().(corral.Seconds)
	least, most, got := digitsOf(b.least), digitsOf(b.most), string(value)
	if isSpan {
		least, most = asSpan(b.least).String(), asSpan(b.most).String()
		got += " seconds"
		if err == nil {
			got = span.String()
		}
	}
	return corral.ErrorAt(corral.Invalid, place, "%.40s is not between %s and %s", got, least, most)
}

func asSpan(s float64) corral.Seconds { return corral.Seconds(s * float64(time.Second)) }
