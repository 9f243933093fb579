package profile

// A Score describes how well the runtimes of a class can be estimated from other runs.
type Score struct {
	Transformation string  `json:"transformation"`
	Level          int     `json:"level"`
	Tasks          int     `json:"tasks"`           // number of estimated tasks
	Actual         float64 `json:"actual_s"`        // sum of the runtimes of the tasks
	Wrong          float64 `json:"wrong_s"`         // sum of |actual − estimate|, by the model from the other runs
	WrongByMean    float64 `json:"wrong_by_mean_s"` // the same sum, by the mean of the other runs

	// WrongBy holds the same sum for each of Models; if a model cannot be fitted, the mean is used instead.
	WrongBy [len(Models)]float64 `json:"wrong_by_s"`
}

// Validate returns a score for each class, computed by nested leave-one-run-out cross-validation: each run is estimated
// from the others, and the model is chosen from these others alone, again by leaving out one run at a time. So the
// scores show the error to expect for a new run. The result does not include classes with only one run.
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

// Error returns Wrong divided by Actual, i.e. the relative error of the estimates, or 0 if all runtimes are 0.
func (s Score) Error() float64 {
	if s.Actual == 0 {
		return 0
	}
	return s.Wrong / s.Actual
}
