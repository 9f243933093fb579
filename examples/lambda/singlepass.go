package lambda

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
)

// letters are the bases with codes 0 to 3; any other letter has the code unknown. The complement of code c is 3-c, and
// words as numbers in base 4 sort alphabetically.
const (
	letters = "ACGT"
	unknown = byte(len(letters))
)

// A wordCount is a canonical word with its number of occurrences.
type wordCount struct {
	word  string
	times int
}

// SinglePass computes the workflow's report from FASTA text of the whole genome, with tables that have one entry per
// possible word, where the workflow sorts and merges.
func SinglePass(r io.Reader) (string, error) {
	genome, err := readFASTA(r)
	if err != nil {
		return "", err
	}
	var spectrum [longest + 1][]wordCount
	for k := 1; k <= longest; k++ {
		spectrum[k] = count(genome, k)
	}
	chance := chanceMeans(genome)

	var b strings.Builder
	writeHead(&b, spectrum[1])
	for k := 1; k <= longest; k++ {
		writeSpectrum(&b, k, spectrum[k], chance[k])
	}
	writeMostFrequent(&b, spectrum[shown])
	writeHistogram(&b, spectrum[shown])
	if err := writeSites(&b, spectrum[6]); err != nil {
		return "", err
	}
	return b.String(), nil
}

// readFASTA returns the codes of all letters in r.
func readFASTA(r io.Reader) ([]byte, error) {
	var codes []byte
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		line := strings.ToUpper(lines.Text())
		if strings.HasPrefix(line, ">") {
			continue
		}
		for _, part := range strings.Fields(line) {
			codes = appendCodes(codes, part)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read FASTA: %w", err)
	}
	return codes, nil
}

// appendCodes appends the codes of a line's letters. A letter other than a base has the code unknown, which ends a
// word.
func appendCodes(codes []byte, s string) []byte {
	for i := range len(s) {
		if c := strings.IndexByte(letters, s[i]); c >= 0 {
			codes = append(codes, byte(c))
		} else {
			codes = append(codes, unknown)
		}
	}
	return codes
}

// eachWord calls visit with the canonical word of k letters at each place of genome that has one.
func eachWord(genome []byte, k int, visit func(word uint32)) {
	var forward, back uint32
	mask := uint32(1)<<(2*k) - 1
	known := 0
	for _, c := range genome {
		if c == unknown {
			known = 0
			continue
		}
		forward = (forward<<2 | uint32(c)) & mask
		back = back>>2 | uint32(3-c)<<(2*k-2)
		if known++; known >= k {
			visit(min(forward, back))
		}
	}
}

// count returns the canonical words of k letters in alphabetical order.
func count(genome []byte, k int) []wordCount {
	table := make([]int32, 1<<(2*k))
	eachWord(genome, k, func(word uint32) { table[word]++ })
	var counts []wordCount
	for word, times := range table {
		if times > 0 {
			counts = append(counts, wordCount{spell(word, k), int(times)})
		}
	}
	return counts
}

// spell returns the word as letters.
func spell(word, k int) string {
	b := make([]byte, k)
	for i := k - 1; i >= 0; i-- {
		b[i] = letters[word&3]
		word >>= 2
	}
	return string(b)
}

// chanceMeans returns, by length, the mean number of different words in the shuffled genomes.
func chanceMeans(genome []byte) (mean [longest + 1]float64) {
	for c := range controls {
		random := c + 1
		shuffled := slices.Clone(genome)
		for range shuffles {
			random = shuffle(shuffled, random)
			for k := 1; k <= longest; k++ {
				mean[k] += float64(different(shuffled, k))
			}
		}
	}
	for k := range mean {
		mean[k] /= controls * shuffles
	}
	return mean
}

// shuffle is Fisher and Yates's algorithm with Park and Miller's generator; it returns the generator's state.
func shuffle(s []byte, random int) int {
	for i := len(s); i > 1; i-- {
		random = 16807 * random % 2147483647
		j := random % i
		s[i-1], s[j] = s[j], s[i-1]
	}
	return random
}

// different returns the number of different canonical words of k letters in the genome.
func different(genome []byte, k int) int {
	seen := make([]bool, 1<<(2*k))
	n := 0
	eachWord(genome, k, func(word uint32) {
		if !seen[word] {
			seen[word] = true
			n++
		}
	})
	return n
}

// writeHead writes the title, the GC content, and the head of the table of word lengths.
func writeHead(w io.Writer, bases []wordCount) {
	all, gc := 0, 0
	for _, c := range bases {
		all += c.times
		if c.word == "C" {
			gc = c.times
		}
	}
	fmt.Fprintln(w, "Enterobacteria phage lambda, NC_001416")
	fmt.Fprintf(w, "%d bases, GC content %.2f %%\n", all, float64(100*gc)/float64(all))
	fmt.Fprintln(w, "\nCanonical words (k-mers), and how many different ones a shuffled genome has")
	fmt.Fprintf(w, "%4s%10s%11s%11s%8s%8s\n", "k", "words", "different", "shuffled", "once", "most")
}

// writeSpectrum writes the line about the words of one length.
func writeSpectrum(w io.Writer, k int, counts []wordCount, chance float64) {
	words, once, most := 0, 0, 0
	for _, c := range counts {
		words += c.times
		most = max(most, c.times)
		if c.times == 1 {
			once++
		}
	}
	fmt.Fprintf(w, "%4d%10d%11d%11.1f%8d%8d\n", k, words, len(counts), chance, once, most)
}

// writeMostFrequent lists the most frequent words, equal ones in alphabetical order.
func writeMostFrequent(w io.Writer, counts []wordCount) {
	fmt.Fprintf(w, "\nMost frequent words of %d letters\n", shown)
	ranked := slices.SortedStableFunc(slices.Values(counts), func(a, b wordCount) int {
		return cmp.Compare(b.times, a.times)
	})
	for _, c := range ranked[:min(listed, len(ranked))] {
		fmt.Fprintf(w, "%-10s%5d\n", c.word, c.times)
	}
}

// writeHistogram writes how many words occur once, twice and so on.
func writeHistogram(w io.Writer, counts []wordCount) {
	fmt.Fprintf(w, "\nWords of %d letters by how often they occur\n", shown)
	words := map[int]int{}
	most := 0
	for _, c := range counts {
		words[c.times]++
		most = max(most, c.times)
	}
	for times := 1; times <= most; times++ {
		if words[times] > 0 {
			fmt.Fprintf(w, "%5d times%8d\n", times, words[times])
		}
	}
}

// writeSites lists the enzymes of enzymes.txt whose word of six letters occurs in counts.
func writeSites(w io.Writer, counts []wordCount) error {
	table, err := FS.ReadFile("enzymes.txt")
	if err != nil {
		return fmt.Errorf("read the enzymes: %w", err)
	}
	fmt.Fprintln(w, "\nRestriction sites")
	for line := range strings.Lines(string(table)) {
		word, enzyme, _ := strings.Cut(strings.TrimSpace(line), " ")
		i, found := slices.BinarySearchFunc(counts, word, func(c wordCount, word string) int {
			return strings.Compare(c.word, word)
		})
		if found {
			fmt.Fprintf(w, "%-10s%-10s%5d\n", enzyme, word, counts[i].times)
		}
	}
	return nil
}
