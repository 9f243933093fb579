package wfformat

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/corral-pilot/corral/workflow"
)

// The control of tasks in x-corral; these types have the same fields as the corresponding types in package workflow.
type (
	control struct {
		Noop       bool    `json:"noop,omitempty"`
		Done       bool    `json:"done,omitempty"`
		Final      bool    `json:"final,omitempty"`
		Priority   int     `json:"priority,omitempty"`
		Label      string  `json:"label,omitempty"`
		Category   string  `json:"category,omitempty"`
		Pre        *script `json:"pre,omitempty"`
		PreSkip    int     `json:"pre_skip,omitempty"`
		Post       *script `json:"post,omitempty"`
		Hold       *script `json:"hold,omitempty"`
		UnlessExit int     `json:"unless_exit,omitempty"`
		Abort      *abort  `json:"abort,omitempty"`
	}

	script struct {
		Argv        []string `json:"argv"`
		Dir         string   `json:"dir,omitempty"`
		DeferStatus int      `json:"defer_status,omitempty"`
		DeferAfter  seconds  `json:"defer_s,omitempty"`
	}

	abort struct {
		Exit   int  `json:"exit"`
		Return *int `json:"return,omitempty"`
	}

	subworkflow struct {
		Name    string   `json:"name"`
		First   int      `json:"first"` // index of a task, from 0
		End     int      `json:"end"`
		Job     bool     `json:"job,omitempty"`
		Retries *int     `json:"retries,omitempty"`
		Control *control `json:"control,omitempty"`
	}
)

// workflowExtension is the x-corral object of the specification itself.
type workflowExtension struct {
	Categories   map[string]int `json:"categories,omitempty"`
	Subworkflows []subworkflow  `json:"subworkflows,omitempty"`
}

// UnmarshalJSON refuses unknown fields, as they are also refused in an extension.
func (x *workflowExtension) UnmarshalJSON(b []byte) error {
	type plain workflowExtension // without this method
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	return dec.Decode((*plain)(x))
}

// apply applies x to the workflow, whose tasks must be known; a nil extension has no effect.
func (x *workflowExtension) apply(wf *workflow.Workflow) error {
	if x == nil {
		return nil
	}
	for category, limit := range x.Categories {
		if limit < 0 {
			return fmt.Errorf("%s: category %q: %d is negative", extensionKey, category, limit)
		}
	}
	wf.Categories = x.Categories
	for _, s := range x.Subworkflows {
		if s.First < 0 || s.First >= s.End || s.End > len(wf.Tasks) {
			return fmt.Errorf("%s: subworkflow %q: tasks %d to %d of %d",
				extensionKey, s.Name, s.First, s.End, len(wf.Tasks))
		}
		wf.Subworkflows = append(wf.Subworkflows, workflow.Subworkflow{
			Name: s.Name, First: s.First, End: s.End, Job: s.Job, Retries: s.Retries, Control: s.Control.read(),
		})
	}
	return nil
}

// workflowExtensionOf returns the extension for the workflow, or nil if none is needed.
func workflowExtensionOf(wf *workflow.Workflow) *workflowExtension {
	if len(wf.Categories) == 0 && len(wf.Subworkflows) == 0 {
		return nil
	}
	x := &workflowExtension{Categories: wf.Categories}
	for _, s := range wf.Subworkflows {
		sub := subworkflow{s.Name, s.First, s.End, s.Job, s.Retries, controlOf(s.Control)}
		x.Subworkflows = append(x.Subworkflows, sub)
	}
	return x
}

func (c *control) read() *workflow.Control {
	if c == nil {
		return nil
	}
	return &workflow.Control{
		Noop: c.Noop, Done: c.Done, Final: c.Final, Priority: c.Priority, Category: c.Category, Pre: c.Pre.read(),
		Label: c.Label, PreSkip: c.PreSkip, Post: c.Post.read(), Hold: c.Hold.read(), UnlessExit: c.UnlessExit,
		Abort: (*workflow.Abort)(c.Abort),
	}
}

func controlOf(c *workflow.Control) *control {
	if c == nil {
		return nil
	}
	return &control{
		Noop: c.Noop, Done: c.Done, Final: c.Final, Priority: c.Priority, Category: c.Category, Pre: scriptOf(c.Pre),
		Label: c.Label, PreSkip: c.PreSkip, Post: scriptOf(c.Post), Hold: scriptOf(c.Hold), UnlessExit: c.UnlessExit,
		Abort: (*abort)(c.Abort),
	}
}

func (s *script) read() *workflow.Script {
	if s == nil {
		return nil
	}
	return &workflow.Script{
		Argv: s.Argv, Dir: s.Dir, DeferStatus: s.DeferStatus, DeferAfter: time.Duration(s.DeferAfter),
	}
}

func scriptOf(s *workflow.Script) *script {
	if s == nil {
		return nil
	}
	return &script{Argv: s.Argv, Dir: s.Dir, DeferStatus: s.DeferStatus, DeferAfter: seconds(s.DeferAfter)}
}
