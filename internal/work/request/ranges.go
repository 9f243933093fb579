package request

import (
	"encoding/json"
	"reflect"
	"strconv"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
)

// bounds are the minimum and the maximum of a number, in the unit of its field.
type bounds struct {
	least, most float64
	orZero      bool // 0 is also allowed: it means none, or the default
}

// maxSpan is the maximum walltime, and the maximum time from now until a planned start.
const (
	maxSpan  = corral.Seconds(366 * 24 * time.Hour)
	maxSpanS = float64(maxSpan) / float64(time.Second)
)

// ranges :: name of a number in JSON → its range. A name means the same in all requests, so one table is enough.
// openapi.yaml contains the same ranges.
var ranges = map[string]bounds{
	"hosts":             {least: 1, most: 10_000},
	"cpus":              {least: 1, most: 1 << 16},
	"memory_mib":        {most: 1 << 30}, // 1 PiB
	"gpus":              {most: 1 << 16},
	"retries":           {most: 1000},
	"walltime_s":        {least: 10, most: maxSpanS},
	"expires_in_s":      {most: maxSpanS},
	"idle_s":            {least: 1, most: maxSpanS, orZero: true},
	"min_stay_s":        {most: maxSpanS},
	"overlap_s":         {most: maxSpanS},
	"queue_timeout_s":   {least: 1, most: maxSpanS, orZero: true},
	"crash_limit":       {least: -1, most: 1000},
	"stall_s":           {most: maxSpanS},
	"default_runtime_s": {most: maxSpanS},
	"deadline_s":        {most: maxSpanS},
	"overhead_s":        {most: maxSpanS},
	"queue_wait_s":      {most: maxSpanS},
	"not_before_s":      {most: maxSpanS},
	"max_pilots":        {most: 100_000},
	"max_peak_cpus":     {most: 1 << 24},
	"tradeoff":          {most: 1},
	"confidence":        {most: 1},
	"host_cpus":         {most: 1 << 16},
	"min_cpus":          {most: 1 << 24},
	"most":              {most: 100_000},
	"pilot_cpus":        {most: 1 << 16},
	"pilot_walltime_s":  {least: 10, most: maxSpanS, orZero: true},
	"max_cpus":          {least: 1, most: 1 << 24},
	"seed":              {most: 1<<53 - 1}, // the largest that every JSON parser represents exactly
	"run_id":            {most: 1<<53 - 1},
	"amount":            {most: 1e12},
	"elements":          {most: 1 << 40}, // api.MaxArray is checked separately
	"at_once":           {most: api.MaxArray},
	"task":              {least: 1, most: 1 << 31},
	"index":             {most: 1 << 31},
	"attempt":           {most: 1 << 31},
	"stdout_bytes":      {most: 1<<53 - 1},
	"stderr_bytes":      {most: 1<<53 - 1},
	"estimate_s":        {most: maxSpanS},
	"time_limit_s":      {most: maxSpanS},
	"grace_s":           {most: api.MaxGrace},
	"disk_mib":          {most: 1 << 30},
	"priority":          {least: -api.MaxPriority, most: api.MaxPriority},
	"max_queued":        {most: 1_000_000},
	"max_running":       {most: 1_000_000},
}

// has reports whether a number is within the bounds.
func (b bounds) has(n float64) bool { return n >= b.least && n <= b.most || b.orZero && n == 0 }

func (b bounds) String() string {
	s := "from " + plain(b.least) + " to " + plain(b.most)
	if b.orZero {
		return "that is 0, or " + s
	}
	return s
}

// plain formats a number without an exponent.
func plain(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

// outside returns the error for a value that is not in the range. v contains the decoded value, unless err is not nil.
// Time spans are formatted as durations, which are easier to read than seconds.
func (b bounds) outside(place string, v reflect.Value, value json.RawMessage, err error) error {
	span, isSpan := v.Interface().(corral.Seconds)
	least, most, got := plain(b.least), plain(b.most), string(value)
	if isSpan {
		least, most = asSpan(b.least).String(), asSpan(b.most).String()
		got += " seconds"
		if err == nil {
			got = span.String()
		}
	}
	return corral.ErrorAt(corral.Invalid, place, "%.40s is not between %s and %s", got, least, most)
}

// asSpan returns the bound of a field in seconds as a duration.
func asSpan(s float64) corral.Seconds { return corral.Seconds(s * float64(time.Second)) }
