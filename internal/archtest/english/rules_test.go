package english

import (
	"regexp"
	"testing"
)

// A rule describes a construction that is not to be used.
type rule struct {
	name  string
	find  *regexp.Regexp
	skip  *regexp.Regexp // correct English: tested with the words before the match; nil: none
	why   string
	write string   // the rewrite
	bad   []string // must match
	good  []string // must not match
}

// rules is the whole style sheet. Constructions that a pattern cannot tell from correct English are left out: "says" of
// programs, passive "is told", "who" for things after a noun, "gone", and "what" within a sentence.
var rules = []rule{
	{
		name:  "is no X",
		find:  regexp.MustCompile(`\b(?:is|are|was|were|be|been) no [A-Za-z_]+`),
		skip:  regexp.MustCompile(`(?i)\bthere\b|\bno (longer|more|less|fewer|better|worse|other|use|wonder|\w+er)$`),
		why:   "English negates the verb, not the noun",
		write: `"is not a X", "has no X", "must be X"`,
		bad:   []string{"%q is no absolute path", "bytes that are no UTF-8", "it may be no error"},
		good:  []string{"there is no such plan", "a token is no longer valid", "it is no worse", "There may be no terminal"},
	},
	{
		name: "nobody",
		find: regexp.MustCompile(`\b[Nn]obody( else)? ` +
			`(?:is|was|has|had|may|can|could|would|will|must|does|did|should|reads?|sees?|knows?|\w+s|\w+ed)\b`),
		skip:  regexp.MustCompile(`(?i)\b(as|user|to|of) nobody\b`),
		why:   "programs and objects are not persons",
		write: `name who acts, or use the passive with "not": "no caller reads", "is not read"`,
		bad:   []string{"a row that nobody reads", "nobody else has it", "Nobody may trace"},
		good:  []string{"It runs as nobody is allowed to", "their own plans and nobody else's", "the user nobody"},
	},
	{
		name:  "whoever",
		find:  regexp.MustCompile(`\b[Ww]ho(?:m|s|so)?ever\b|\b(?:for|to|from|by|with|of) who [a-z]+`),
		skip:  regexp.MustCompile(`of who (has|is|are|owns)$`),
		why:   "a reader wants to know who that is",
		write: `the caller, the client, the user, "anyone who"`,
		bad:   []string{"whoever reads a line decides", "no folders for who asks", "Whosever it is"},
		good:  []string{"those who ask", "It says who runs the pool", "a list of who has what"},
	},
	{
		name:  "so many",
		find:  regexp.MustCompile(`\b[Ss]o (?:many|much|long|often)\b(?: [\w%().,-]+){0,4}`),
		skip:  regexp.MustCompile(`[Ss]o (many|much|long|often).* (that|as)\b`),
		why:   `"so many" compares with something the reader has not seen`,
		write: `"n", "the number of", "this long", "the given time", "for as long as"`,
		bad:   []string{"fails on so many workers", "leave after so long without work", "at most so much."},
		good:  []string{"so many that it fails", "so long as it runs", "so much sooner that it is worth it", "so far"},
	},
	{
		name:  "as it is",
		find:  regexp.MustCompile(`\bas (?:it|they) (?:is|are|was|were|stands?)(?:[.,;:)]| \||$)`),
		skip:  regexp.MustCompile(`\bas \w+ as |\b(insofar|such|inasmuch) as `),
		why:   "it is a figure of speech for a plain adverb",
		write: `"unchanged", "literally", "verbatim", "the current X"`,
		bad:   []string{"the row stays as it was.", "lines are handed on as they are", "plays the queue as it is, then"},
		good:  []string{"as soon as it is, it starts", "as it is called", "as fast as they are."},
	},
	{
		name:  "is said",
		find:  regexp.MustCompile(`\b(?:is|are|was|were|be|been|being) said\b(?: to)?`),
		skip:  regexp.MustCompile(`said to$`),
		why:   "programs do not speak",
		write: `"is reported", "is printed", "is recorded", "is stated"`,
		bad:   []string{"what is said of a pool", "both are said", "when it was said that it is late"},
		good:  []string{"a queue is said to be fair", "the report says so"},
	},
	{
		name:  "tells of",
		find:  regexp.MustCompile(`\b(?:[Tt]ells?|told|telling) (?:\w+ )?of\b`),
		skip:  regexp.MustCompile(` (kind|sort|part|all|one|each|some|most) of$`),
		why:   "programs do not tell stories",
		write: `"reports", "describes", "notifies X of", "returns"`,
		bad:   []string{"a result tells of it", "Mirror tells of a mirror", "a node is told of events"},
		good:  []string{"a pilot that is told to go", "tells them apart", "tells all of it"},
	},
	{
		name:  "knows of",
		find:  regexp.MustCompile(`\b[Kk]nows? (?:of|no|nothing of)\b`),
		why:   "programs do not know",
		write: `"does not model", "is independent of", "has", "has a record of", "does not depend on"`,
		bad:   []string{"It knows no profile", "what corrald knows of a run", "they know nothing of it"},
		good:  []string{"the user knows the key", "sites that we know nothing about", "it is known no later", "no longer known of"},
	},
	{
		name: "Of a …",
		find: regexp.MustCompile(`(?:^|[.;:] )(?:Of (?:an?|one|another|others?|what|each|every|such|some|those)|` +
			`That (?:an?|it|they|there|the|no)) [a-z_]+`),
		why:   "the sentence begins with what belongs at its end",
		write: `subject, verb, object: "For a job …, it reports", "It is an error if"`,
		bad:   []string{"Of a task only the last run counts.", "Go. Of others it is zero.", "That it fails is no reason"},
		good:  []string{"Of returns the word", "Of 25 winners 23 are", "That is why", "most of a task", "That one is kept"},
	},
	{
		name: "To do it is",
		find: regexp.MustCompile(
			`(?:^|[.;:] )To [a-z]+(?: [\w-]+){1,5} (?:is|does|changes|costs|takes|makes|would|releases|means|takes)\b`),
		skip:  regexp.MustCompile(`To .*\b(that|what|which|who)\b`),
		why:   "an infinitive is a stiff subject",
		write: `a gerund or an imperative: "Repeating it is harmless"`,
		bad:   []string{"To repeat it is harmless.", "Close it. To ask twice changes nothing."},
		good:  []string{"To cancel them, use", "To see what is there", "It is easy to repeat it is true"},
	},
	{
		name: "goes",
		find: regexp.MustCompile(`\bgoes(?:[.,;:]| \||$)|\b(?:goes|go|went) with (?:its?|their|them)\b|` +
			`\bgoes (?:first|last|before)\b`),
		skip:  regexp.MustCompile(`\b(where|far|how|time|come|then|which one|as \w+( \w+)?) (\w+ )*go`),
		why:   "a thing that is deleted or has precedence does not walk",
		write: `"leaves", "ends", "is removed", "is deleted with", "takes precedence"`,
		bad:   []string{"until its directory goes.", "a schedule goes with its plan", "a flag that is set goes before"},
		good: []string{
			"it goes on", "where the time goes.", "as far as the text goes", "as the journal goes",
			"pilots come and go with their tasks",
		},
	},
	{
		name:  "for ever",
		find:  regexp.MustCompile(`\bfor ever\b|\banew\b`),
		why:   "it is dated",
		write: `"forever", "indefinitely"; "again"`,
		bad:   []string{"jobs wait for ever", "a task begins anew"},
		good:  []string{"forever", "a new task", "for every job"},
	},
	{
		name:  "What it has",
		find:  regexp.MustCompile(`(?:^|[.;:] )(?:What\b[^.?!]*[.?!]?|(?:An? )?\w+ (?:is|are) what\b)`),
		skip:  regexp.MustCompile(`\?$|\b(This|That|this|that|It) is what`),
		why:   `a clause stands where a noun belongs`,
		write: `the noun: "the output", "the result", "the rest", "a request that"`,
		bad:   []string{"What runs leave is kept.", "A Source is what runs leave.", "It ends. What is left waits."},
		good:  []string{"What is a pilot? It", "This is what happened", "It says what happened"},
	},
}

// TestRules checks the examples of each rule.
func TestRules(t *testing.T) {
	for _, r := range rules {
		for _, text := range r.bad {
			if len(r.matches(text)) == 0 {
				t.Errorf("%s: %q must match", r.name, text)
			}
		}
		for _, text := range r.good {
			if len(r.matches(text)) != 0 {
				t.Errorf("%s: %q must not match", r.name, text)
			}
		}
		if len(r.bad) == 0 || len(r.good) == 0 || r.why == "" || r.write == "" {
			t.Errorf("%s: a rule needs a reason, a rewrite, and examples of both kinds", r.name)
		}
	}
}

// matches returns where the text has the construction.
func (r rule) matches(text string) [][]int {
	var found [][]int
	for _, at := range r.find.FindAllStringIndex(text, -1) {
		if r.skip == nil || !r.skip.MatchString(text[context(text, at[0]):at[1]]) {
			found = append(found, at)
		}
	}
	return found
}

// context returns where the last words of the sentence before offset begin, four at most.
func context(text string, offset int) int {
	for words := 0; offset > 0; offset-- {
		switch text[offset-1] {
		case '.', ';', ':', '|':
			return offset
		case ' ':
			if words++; words > 4 {
				return offset
			}
		}
	}
	return offset
}
