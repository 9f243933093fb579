package request

import (
	"encoding/json"
	"reflect"
	"strconv"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
)

// bounds are the least and the most that a number may be, in the unit of its field.
type bounds struct {
	least, most float64
	orZero      bool // 0 is allowed, too: it stands for none, or for a default
}

// maxSpan is the longest walltime, and the furthest ahead that a start may be planned.
const (
	maxSpan  = corral.Seconds(366 * 24 * time.Hour)
	maxSpanS = float64(maxSpan) / float64(time.Second)
)

// ranges :: number of a request, by its name in JSON → what it may be. A name means the same in every request, so that
// one table serves all of them. openapi.yaml says the same.
var ranges = map[string]bounds{
	"hosts":             {least: 1, most: 10_000},
	"cpus":              {least: 1, most: 1 << 16},
	"memory_mib":        {most: 1 << 30}, // 1 PiB
	"gpus":              {most: 1 << 16},
	"retries":           {most: 1000},
	"walltime_s":        {least: 10, most: maxSpanS},
	"expires_in_s":      {most: maxSpanS},
	"idle_s":            {least: 1, most: maxSpanS, orZero: true},
	"overlap_s":         {most: maxSpanS},
	"queue_timeout_s":   {least: 1, most: maxSpanS, orZero: true},
	"crash_limit":       {least: -1, most: 1000},
	"stall_s":           {most: maxSpanS},
	"default_runtime_s": {most: maxSpanS},
	"deadline_s":        {most: maxSpanS},
	"overhead_s":        {most: maxSpanS},
	"tradeoff":          {most: 1},
	"confidence":        {most: 1},
	"host_cpus":         {most: 1 << 16},
	"min_cpus":          {most: 1 << 24},
	"most":              {most: 100_000},
	"pilot_cpus":        {most: 1 << 16},
	"pilot_walltime_s":  {least: 10, most: maxSpanS, orZero: true},
	"max_cpus":          {least: 1, most: 1 << 24},
	"seed":              {most: 1<<53 - 1}, // the largest that every reader of JSON keeps
	"run_id":            {most: 1<<53 - 1},
	"amount":            {most: 1e12},
	"elements":          {most: 1 << 40}, // api.MaxArray has its own answer
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

// has reports whether a number keeps to the bounds.
func (b bounds) has(n float64) bool { return n >= b.least && n <= b.most || b.orZero && n == 0 }

func (b bounds) String() string {
	s := "from " + plain(b.least) + " to " + plain(b.most)
	if b.orZero {
		return "that is 0, or " + s
	}
	return s
}

// plain writes a number without an exponent.
func plain(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

// outside says that a value is not in the range. v is what the value was read into, unless err kept it from that. Spans
// of time are shown as durations, which people read more easily than seconds.
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

// asSpan is a bound of a field of seconds as a duration.
func asSpan(s float64) corral.Seconds { return corral.Seconds(s * float64(time.Second)) }
