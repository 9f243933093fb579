package notation

import (
	"strconv"
	"strings"
)

// FileNames returns the values of the letters in the patterns of a job's files, except %N. task is the job's number in
// its array, or NoTask.
func FileNames(id, arrayID int64, task, name, user string) map[byte]string {
	job := strconv.FormatInt(id, 10)
	return map[byte]string{
		'j': job, 'J': job, 'A': strconv.FormatInt(arrayID, 10), 'a': task, 'x': name, 'u': user, 'n': "0", 't': "0",
		's': "batch",
	}
}

// maxWidth is the maximum width to which a number in a file's name is padded.
const maxWidth = 10

// Expand expands a file's name: %j is the job's id, %A the array's, %a the task's number in the array, %x the job's
// name, %u the user, %N the first node, %n and %t the number of node and task in the job, %s the step, %J the job and
// step. A width, as in %4j, pads numbers with zeros. A letter that is not in values stays unchanged, %% is a %, and a
// name that contains a backslash stays unchanged except that the backslash is removed.
func Expand(pattern string, values map[byte]string) string {
	if strings.Contains(pattern, `\`) {
		return unescape(pattern)
	}
	var b strings.Builder
	for i := 0; i < len(pattern); i++ {
		if pattern[i] != '%' {
			b.WriteByte(pattern[i])
			continue
		}
		end := i + 1
		for end < len(pattern) && pattern[end] >= '0' && pattern[end] <= '9' {
			end++
		}
		if end == len(pattern) { // a % with a width but without a letter
			b.WriteString(pattern[i:])
			break
		}
		value, known := values[pattern[end]]
		switch {
		case pattern[end] == '%':
			b.WriteByte('%')
		case !known: // unchanged
			b.WriteString(pattern[i : end+1])
		default:
			b.WriteString(pad(value, pattern[i+1:end]))
		}
		i = end
	}
	return b.String()
}

// pad pads a number with leading zeros; it returns other texts unchanged.
func pad(value, width string) string {
	n, err := strconv.Atoi(width)
	if _, number := number(value); err != nil || !number {
		return value
	}
	return strings.Repeat("0", max(min(n, maxWidth)-len(value), 0)) + value
}

// unescape removes each backslash that precedes a character.
func unescape(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+1 < len(text) {
			i++
		}
		b.WriteByte(text[i])
	}
	return b.String()
}
