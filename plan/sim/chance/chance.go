// Package chance derives random values by name, not from a stream: a value depends only on the seed and its names, not
// on the values drawn before. Therefore two policies encounter the same runtimes, waits and failures. (In the
// simulator of Juve 2012 the algorithms did not, because its machines shared one stream.)
package chance

import (
	"math"
	"time"
)

// Draw returns a number in [0, 1) for a seed and some names. The names are hashed with FNV-1a (Fowler, Noll, Vo), and
// the hash is mixed as in SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
func Draw(seed uint64, names ...string) float64 {
	const offset, prime = 14695981039346656037, 1099511628211
	h := mix(seed + offset)
	for _, name := range names {
		for i := range len(name) {
			h = (h ^ uint64(name[i])) * prime
		}
		h = (h ^ 0xff) * prime // terminates the name
	}
	return float64(mix(h)>>11) / (1 << 53)
}

func mix(z uint64) uint64 {
	z += 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// Normal returns a number from the standard normal distribution (Box and Muller, 1958).
func Normal(seed uint64, names ...string) float64 {
	u, v := Draw(seed, names...), Draw(mix(seed), names...)
	return math.Sqrt(-2*math.Log(1-u)) * math.Cos(2*math.Pi*v)
}

// Lognormal returns a factor with mean 1 whose logarithm has the given standard deviation.
func Lognormal(sigma float64, seed uint64, names ...string) float64 {
	return math.Exp(sigma*Normal(seed, names...) - sigma*sigma/2)
}

// Exponential returns an exponentially distributed time with the given mean, limited to most.
func Exponential(mean, most time.Duration, seed uint64, names ...string) time.Duration {
	return min(most, time.Duration(float64(mean)*-math.Log(1-Draw(seed, names...))))
}

// Number returns a name that represents a number.
func Number(n int) string { return string([]byte{byte(n), byte(n >> 8), byte(n >> 16), byte(n >> 24)}) }
