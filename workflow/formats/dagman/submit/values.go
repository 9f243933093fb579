package submit

import (
	"fmt"
	"path"
	"strconv"
	"strings"
)

// Join returns the path of a name relative to a folder; if name is absolute, it returns the cleaned name alone.
func Join(folder, name string) string {
	if path.IsAbs(name) {
		return path.Clean(name)
	}
	return path.Join(folder, name)
}

// List returns the items of a comma-separated value, without empty items.
func List(text string) []string {
	var all []string
	for _, item := range strings.Split(strings.Trim(text, `"`), ",") {
		if item = strings.TrimSpace(item); item != "" {
			all = append(all, item)
		}
	}
	return all
}

// Remaps parses the value of transfer_output_remaps: NAME = PATH, separated by semicolons.
func Remaps(text string) (map[string]string, error) {
	all := make(map[string]string)
	text = strings.Trim(text, `"`)
	for _, pair := range strings.Split(text, ";") {
		name, to, ok := strings.Cut(pair, "=")
		if name, to = strings.TrimSpace(name), strings.TrimSpace(to); ok && name != "" && to != "" {
			all[path.Clean(name)] = to
		} else if strings.TrimSpace(pair) != "" {
			return nil, fmt.Errorf("transfer_output_remaps: %.40q must be NAME = PATH", pair)
		}
	}
	return all, nil
}

// Units in bytes.
const (
	KiB = 1 << 10
	MiB = 1 << 20
)

// Bytes parses a request for memory or disk: a number and the letter of its unit, B, K, M, G or T, with or without
// another B. A number without a letter is a multiple of unit. ok is false for other expressions.
func Bytes(text string, unit float64) (bytes float64, ok bool) {
	end := strings.LastIndexAny(text, "0123456789.") + 1
	switch strings.TrimSuffix(strings.ToUpper(strings.TrimSpace(text[end:])), "B") {
	case "":
		if strings.EqualFold(strings.TrimSpace(text[end:]), "B") {
			unit = 1
		}
	case "K":
		unit = KiB
	case "M":
		unit = MiB
	case "G":
		unit = MiB * KiB
	case "T":
		unit = MiB * MiB
	default:
		return 0, false
	}
	n, err := strconv.ParseFloat(strings.TrimSpace(text[:end]), 64)
	return n * unit, err == nil
}
