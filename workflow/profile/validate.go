package profile

// A Score describes how well a class is estimated from other runs.
type Score struct {
	Transformation string  `json:"transformation"`
	Level          int     `json:"level"`
	Tasks          int     `json:"tasks"`           // that were estimated: those of runs that leave at least one other
	Actual         float64 `json:"actual_s"`        // summed over the tasks
	Wrong          float64 `json:"wrong_s"`         // |actual − estimate|, by the model chosen from the other runs
	WrongByMean    float64 `json:"wrong_by_mean_s"` // the same by the mean of the other runs

	// WrongBy is the same for each of Models; by the mean if one cannot be fitted.
	WrongBy [len(Models)]float64 `json:"wrong_by_s"`
}

// Validate scores each class by nested leave-one-run-out: each run is estimated from the others, and the model is
// chosen from the others alone, again by leaving out each of them. So the scores show the error to expect for a new
// run. Classes with only one run are not in the result.
func Validate(p *Profile, speeds Speeds) []Score {
	var all []Score
	for _, c := range p.Classes() {
		folds := folds(c.points(speeds))
		if len(folds) < 2 {
			continue
		}
		s := Score{Transformation: c.Transformation, Level: c.Level}
		for left, actual := range folds {
			rest := without(folds, left)
			mean, _ := fit(Mean, rest)
			wrong, sum := misses(learn(rest), actual)
			byMean, _ := misses(mean, actual)
			for k, m := range Models {
				l, ok := fit(m, rest)
				if !ok {
					l = mean
				}
				by, _ := misses(l, actual)
				s.WrongBy[k] += by
			}
			s.Tasks += len(actual)
			s.Actual, s.Wrong, s.WrongByMean = s.Actual+sum, s.Wrong+wrong, s.WrongByMean+byMean
		}
		all = append(all, s)
	}
	return all
}

// Error returns the sum of the misses divided by the sum of the runtimes; 0 if all runtimes are 0.
func (s Score) Error() float64 {
	if s.Actual == 0 {
		return 0
	}
	return s.Wrong / s.Actual
}
