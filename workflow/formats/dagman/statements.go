package dagman

import (
	"math"
	"strings"
	"time"

	"github.com/corral-pilot/corral/condor/classad"
	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/formats/dagman/submit"
)

// A statement is one line, with access to the following lines, which may contain an inline submit description.
type statement struct {
	submit.Line
	word  string  // its keyword, in upper case
	words *fields // words after the keyword
	lines *submit.Lines
}

// An obeyer processes a statement.
type obeyer struct {
	obey  func(*scope, *statement) error
	waits bool // the statement refers to nodes, which may be defined after it
}

// statements returns all DAGMan statements by their keywords.
func statements() map[string]obeyer {
	return map[string]obeyer{
		"JOB":                {obey: obeyJob},
		"FINAL":              {obey: obeyFinal},
		"SUBDAG":             {obey: obeySubdag},
		"SPLICE":             {obey: obeySplice},
		"INCLUDE":            {obey: obeyInclude},
		"SUBMIT_DESCRIPTION": {obey: obeySubmitDescription},

		"PARENT":       {obeyParent, true},
		"CONNECT":      {obeyConnect, true},
		"PIN_IN":       {obeyPinIn, true},
		"PIN_OUT":      {obeyPinOut, true},
		"VARS":         {obeyVars, true},
		"RETRY":        {obeyRetry, true},
		"PRIORITY":     {obeyPriority, true},
		"CATEGORY":     {obeyCategory, true},
		"MAXJOBS":      {obeyMaxJobs, true},
		"SCRIPT":       {obeyScript, true},
		"PRE_SKIP":     {obeyPreSkip, true},
		"ABORT_DAG_ON": {obeyAbort, true},
		"DONE":         {obeyDone, true},

		"REJECT":      {obey: obeyReject},
		"PROVISIONER": {obey: refuseUnsupported},
		"SERVICE":     {obey: refuseUnsupported},

		"CONFIG":           {obey: ignore},
		"DOT":              {obey: ignore},
		"ENV":              {obey: ignore},
		"JOBSTATE_LOG":     {obey: ignore},
		"NODE_STATUS_FILE": {obey: ignore},
		"SAVE_POINT_FILE":  {obey: ignore},
		"SET_JOB_ATTR":     {obey: obeySetJobAttr},
	}
}

// obeySetJobAttr reads the names that Write stores in attributes; other attributes are ignored.
func obeySetJobAttr(s *scope, st *statement) error {
	name, value, _ := strings.Cut(st.words.text, "=")
	text, ok := classad.ParseOld(strings.TrimSpace(value)).(string)
	switch name = strings.TrimSpace(name); {
	case ok && strings.EqualFold(name, attributeWorkflow) && s.outer == nil:
		s.r.wf.Name = text
	case ok && strings.EqualFold(name, attributeSubDAG) && s.holder != none && s.first == len(s.r.nodes):
		s.prefix = text + "+"
	default:
		return ignore(s, st)
	}
	return nil
}

// ignore skips a statement that concerns DAGMan itself and its files, and warns once for each kind of statement.
func ignore(s *scope, st *statement) error {
	s.r.warnOnce(st.word, st.At, "%s is ignored: it concerns DAGMan itself", st.word)
	return nil
}

func obeyReject(s *scope, st *statement) error {
	return st.At.Errorf("the file must not be run, according to REJECT")
}

func refuseUnsupported(s *scope, st *statement) error {
	return st.At.Errorf("%s nodes are not supported: remove the line, and run that program beside the workflow",
		st.word)
}

// most is the largest number in a statement: HTCondor uses 32 bits.
const most = math.MaxInt32

// target removes the name of a node from the statement's words, and calls do for each node to which the name refers.
func (st *statement) target(s *scope, do func(*node) error) error {
	name, err := st.words.word("the node's name")
	if err != nil {
		return err
	}
	rest := *st.words
	return s.named(name, func(n *node) error {
		*st.words = rest // each call reads the same words
		if err := do(n); err != nil {
			return err
		}
		return st.words.end()
	})
}

// notFinal refuses a statement that does not apply to FINAL nodes.
func notFinal(n *node) error {
	if n.isFinal() {
		return wrong("%q is a FINAL node, which cannot have it", n.name)
	}
	return nil
}

func obeyVars(s *scope, st *statement) error {
	return st.target(s, func(n *node) error {
		mode := *st.words
		appended := false
		switch strings.ToUpper(mode.next()) {
		case "PREPEND":
			*st.words = mode
		case "APPEND":
			*st.words, appended = mode, true
		}
		pairs, err := st.words.pairs()
		if err == nil && len(pairs) > 1 {
			err = s.r.say(len(pairs) - 1)
		}
		if err != nil {
			return err
		}
		if appended {
			n.append = append(n.append, pairs...)
		} else {
			n.vars = append(n.vars, pairs...)
		}
		return nil
	})
}

func obeyRetry(s *scope, st *statement) error {
	return st.target(s, func(n *node) error {
		times, err := st.words.number("the number of retries", 0, most)
		if err != nil {
			return err
		}
		n.retries = &times
		switch word := st.words.next(); {
		case strings.EqualFold(word, "UNLESS-EXIT"):
			n.controls().UnlessExit, err = st.words.number("the exit status", -most, most)
		case word != "":
			err = wrong("%.40q is not UNLESS-EXIT", word)
		}
		if err != nil {
			return err
		}
		return notFinal(n)
	})
}

func obeyPriority(s *scope, st *statement) error {
	return st.target(s, func(n *node) (err error) {
		if n.controls().Priority, err = st.words.number("the priority", -most, most); err != nil {
			return err
		}
		return notFinal(n)
	})
}

func obeyCategory(s *scope, st *statement) error {
	return st.target(s, func(n *node) error {
		name, err := st.words.word("the category")
		if err != nil {
			return err
		}
		n.controls().Category = s.r.builder.Intern(s.categoryOf(name))
		return notFinal(n)
	})
}

// categoryOf returns the full name of a category. If the name begins with a plus sign, the category is shared by all
// splices of a DAG.
func (s *scope) categoryOf(name string) string {
	if strings.HasPrefix(name, "+") {
		for s.isSplice() {
			s = s.outer
		}
	}
	return s.prefix + name
}

func obeyMaxJobs(s *scope, st *statement) error {
	name, err := st.words.word("the category")
	if err != nil {
		return err
	}
	limit, err := st.words.number("the limit", 0, most)
	if err != nil {
		return err
	}
	if s.r.wf.Categories == nil {
		s.r.wf.Categories = make(map[string]int)
	}
	s.r.wf.Categories[s.categoryOf(name)] = limit
	return st.words.end()
}

func obeyScript(s *scope, st *statement) error {
	made := workflow.Script{}
	var kind string
	for kind == "" {
		word, err := st.words.word("PRE, POST or HOLD")
		if err != nil {
			return err
		}
		switch strings.ToUpper(word) {
		case "PRE", "POST", "HOLD":
			kind = strings.ToUpper(word)
		case "DEFER":
			seconds := 0
			made.DeferStatus, err = st.words.number("the exit status of DEFER", 1, most)
			if err == nil {
				seconds, err = st.words.number("the time of DEFER", 0, most)
			}
			made.DeferAfter = time.Duration(seconds) * time.Second
		case "DEBUG":
			st.words.next()
			st.words.next()
			s.r.warnOnce("DEBUG", st.At, "DEBUG of SCRIPT is ignored")
		default:
			err = wrong("%.40q is not PRE, POST or HOLD", word)
		}
		if err != nil {
			return err
		}
	}
	return st.target(s, func(n *node) error {
		if rest := st.words.rest(); made.Argv == nil { // with ALL_NODES, all nodes get the same arguments
			made.Argv = strings.Fields(rest)
		}
		script := made
		if len(script.Argv) == 0 {
			return wrong("the script's name is missing")
		}
		script.Dir = n.dir
		map[string]func(){
			"PRE":  func() { n.controls().Pre = &script },
			"POST": func() { n.controls().Post = &script },
			"HOLD": func() { n.controls().Hold = &script },
		}[kind]()
		return nil
	})
}

func obeyPreSkip(s *scope, st *statement) error {
	return st.target(s, func(n *node) (err error) {
		n.controls().PreSkip, err = st.words.number("the exit status", -most, most)
		return err
	})
}

func obeyAbort(s *scope, st *statement) error {
	return st.target(s, func(n *node) error {
		exit, err := st.words.number("the exit status", -most, most)
		if err != nil {
			return err
		}
		abort := &workflow.Abort{Exit: exit}
		switch word := st.words.next(); {
		case strings.EqualFold(word, "RETURN"):
			var status int
			if status, err = st.words.number("the exit status of the DAG", 0, 255); err != nil {
				return err
			}
			abort.Return = &status
		case word != "":
			return wrong("%.40q is not RETURN", word)
		}
		n.controls().Abort = abort
		return notFinal(n)
	})
}

// obeyDone marks the node with a full name as done: DAGMan itself writes these statements to rescue files. Like DAGMan,
// obeyDone only warns if the name does not match a node, because rescue files may be old.
func obeyDone(s *scope, st *statement) error {
	name, err := st.words.word("the node's name")
	if err != nil {
		return err
	}
	if err := st.words.end(); err != nil {
		return err
	}
	i, err := s.fullNode(name)
	if err != nil && !s.over {
		return err
	}
	if err != nil || s.r.nodes[i].isFinal() {
		s.r.builder.Warn(st.At, "DONE: %q is not a node that can be done; it is ignored", name)
		return nil
	}
	s.r.nodes[i].controls().Done = true
	return nil
}
