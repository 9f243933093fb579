package slurm

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite/survey"
)

// addPrice adds the price by Slurm's billing weights to the facts, if the partitions that the site uses have weights:
// TRESBillingWeights in scontrol show partition. Slurm bills the resource of a node that weighs most if PriorityFlags
// contain MAX_TRES, and otherwise the sum. If these flags are not known, neither is the price.
func addPrice(said survey.Sections, options corral.BatchOptions, partitions []partition, facts *corral.SiteFacts) {
	var used []partition
	for _, p := range partitions {
		if slices.Contains(strings.Split(options.Queue, ","), p.Name) || options.Queue == "" && p.Default {
			used = append(used, p)
		}
	}
	var prices []string
	for _, p := range used {
		weights, err := parseWeights(p.weights)
		if err != nil {
			survey.Note(facts, "the price", fmt.Errorf("TRESBillingWeights of partition %s: %w", p.Name, err))
			return
		}
		price := ""
		if weights != "" {
			of, err := billedOf(said)
			if err != nil {
				survey.Note(facts, "the price", err)
				return
			}
			price = fmt.Sprintf("1ch/%s(%s)-hour", of, weights)
		}
		prices = append(prices, price)
	}
	switch prices = slices.Compact(prices); len(prices) {
	case 0:
	case 1:
		facts.Price = prices[0]
	default:
		survey.Note(facts, "the price", errors.New("the partitions that the site uses have different billing weights"))
	}
}

// billedOf returns the function of the weighted resources that Slurm bills: max or sum.
func billedOf(said survey.Sections) (string, error) {
	if _, err := said.Of("config"); err != nil {
		return "", fmt.Errorf("scontrol show config: %w", err)
	}
	switch flags := configured(said, "PriorityFlags"); {
	case slices.Contains(flags, "MAX_TRES_GRES"):
		return "", errors.New("billing by PriorityFlags=MAX_TRES_GRES cannot be used")
	case slices.Contains(flags, "MAX_TRES"):
		return "max", nil
	}
	return "sum", nil
}

// configured returns the words that scontrol show config lists for a parameter.
func configured(said survey.Sections, parameter string) []string {
	out, _ := said.Of("config")
	for line := range strings.Lines(out) {
		if k, v, _ := strings.Cut(line, "="); strings.TrimSpace(k) == parameter {
			return strings.Split(strings.TrimSpace(v), ",")
		}
	}
	return nil
}

// Weights of memory refer to a MiB unless they end with the letter of another unit.
var unitsPerGiB = map[string]float64{"K": 1 << 20, "M": 1 << 10, "G": 1, "T": 1.0 / (1 << 10), "P": 1.0 / (1 << 20)}

// parseWeights parses TRESBillingWeights, such as CPU=1.0,Mem=0.25G,GRES/gpu=2.0, and returns the weights in the form
// cpu=1,mem=0.25,gpu=2, with memory in GiB. If only types of gpus have weights, the largest one counts. The weight of
// any other resource is an error.
func parseWeights(s string) (string, error) {
	if slices.Contains(noLimit, s) {
		return "", nil
	}
	of := map[string]float64{}
	for one := range strings.SplitSeq(s, ",") {
		name, value, _ := strings.Cut(one, "=")
		name = strings.ToLower(name)
		scale := 1.0
		if name == "mem" {
			unit := strings.ToUpper(value[max(0, len(value)-1):])
			if scale = unitsPerGiB[unit]; scale > 0 {
				value = value[:len(value)-1]
			}
			scale = cmp.Or(scale, unitsPerGiB["M"])
		}
		weight, err := strconv.ParseFloat(value, 64)
		if err != nil || weight < 0 || weight > math.MaxInt32 {
			return "", fmt.Errorf("scontrol printed %q", one)
		}
		typed := strings.HasPrefix(name, "gres/gpu:")
		switch {
		case typed && strings.Contains(strings.ToLower(s), "gres/gpu="):
			return "", fmt.Errorf("%q beside the weight of all gpus cannot be used", one)
		case typed:
			of["gpu"] = max(of["gpu"], weight)
		case name == "gres/gpu":
			of["gpu"] = weight
		case name == "cpu" || name == "mem":
			of[name] = weight * scale
		case weight > 0:
			return "", fmt.Errorf("%q cannot be used", one)
		}
	}
	var all []string
	for _, name := range []string{"cpu", "mem", "gpu"} {
		if w, ok := of[name]; ok { // a price has at most six decimal places
			all = append(all, name+"="+strconv.FormatFloat(math.Round(w*1e6)/1e6, 'f', -1, 64))
		}
	}
	return strings.Join(all, ","), nil
}
