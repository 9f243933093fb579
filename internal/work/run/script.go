package run

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/embedded/executor"
	"github.com/corral-pilot/corral/internal/kit/retry"
	"github.com/corral-pilot/corral/workflow"
)

// mostScripts is the maximum number of scripts of a run at a time, which is DAGMan's default.
const mostScripts = 20

// scriptDir contains the output of the last tries of scripts: UNIT.pre, UNIT.post.
const scriptDir = "scripts"

// A scripter runs the PRE and POST scripts of one run, in the run's data directory. The end of a script is written to
// the journal before the run's driver sees it. A script interrupted by corrald's end is started again.
type scripter struct {
	plan  *plan
	sink  *sink
	ctx   context.Context // until stop
	end   context.CancelFunc
	calls sync.WaitGroup
	busy  int                // number of scripts whose ends the driver has not seen
	last  map[int32]*running // :: unit → its last script
}

// A running is a script that has been started.
type running struct {
	round int32
	busy  bool
	kill  context.CancelFunc
	over  chan struct{} // closed when the script has ended
}

func newScripter(ctx context.Context, p *plan, s *sink) *scripter {
	c := &scripter{plan: p, sink: s, last: map[int32]*running{}}
	c.ctx, c.end = context.WithCancel(ctx)
	return c
}

// read records the end of a script, unless it is nil, and kills the scripts that are no longer wanted.
func (c *scripter) read(x *execution.Execution, end *execution.ScriptEnd) {
	if end != nil {
		if r := c.last[end.Unit]; r != nil && r.round == end.Round {
			c.forget(r)
		}
	}
	for _, unit := range execution.UnwantedScripts(x) {
		if r := c.last[unit]; r != nil {
			r.kill()
			c.forget(r)
		}
	}
}

// forget makes room for another script.
func (c *scripter) forget(r *running) {
	if r.busy {
		r.busy = false
		c.busy--
	}
}

// start starts the scripts that are due. A unit's next script waits until its last one has ended.
func (c *scripter) start(x *execution.Execution, now time.Time) {
	if c.ctx.Err() != nil {
		return
	}
	for _, call := range execution.Scripts(x, now, mostScripts-c.busy) {
		ctx, kill := context.WithCancel(c.ctx)
		before, r := c.last[call.Unit], &running{round: call.Round, busy: true, kill: kill, over: make(chan struct{})}
		c.busy++
		c.last[call.Unit] = r
		c.calls.Go(func() {
			defer kill()
			defer close(r.over)
			if before != nil {
				<-before.over
			}
			c.call(ctx, call)
		})
	}
}

// stop kills the running scripts. Afterwards no scripts are started, and nothing more is reported to the sink.
func (c *scripter) stop() {
	c.end()
	c.calls.Wait()
}

// call runs one script, and reports its end until the journal accepts it.
func (c *scripter) call(ctx context.Context, call execution.Call) {
	began := time.Now()
	exit, err := c.run(ctx, call)
	if ctx.Err() != nil {
		return // it was killed, or is no longer needed
	}
	end := &execution.ScriptEnd{
		Unit: call.Unit, Post: call.Post, Try: call.Try, Round: call.Round, Exit: exit,
		Started: execution.ToMsec(began), Ended: execution.ToMsec(time.Now()),
	}
	if err != nil {
		end.Reason = fmt.Sprintf("%s%v", scriptFailed(call.Post), err)
	}
	for ctx.Err() == nil {
		if err := c.sink.scripted(end); err == nil {
			return
		}
		retry.For(ctx, retryAfter)
	}
}

// scriptFailed returns the prefix of the reason for a failed script.
func scriptFailed(post bool) string {
	if post {
		return "its POST script: "
	}
	return "its PRE script: "
}

// run runs one script to its end.
func (c *scripter) run(ctx context.Context, call execution.Call) (exit int, err error) {
	name, control := c.plan.control(call.Unit)
	s := map[bool]*workflow.Script{false: control.Pre, true: control.Post}[call.Post]
	values := macros(c.plan, c.plan.localName(call.Unit, name), call)
	argv := make([]string, len(s.Argv))
	for k, word := range s.Argv {
		argv[k] = word
		if value, ok := values[strings.ToUpper(word)]; ok {
			argv[k] = value
		}
	}
	if call.Post && call.Return > 0 && int(call.Unit) < len(c.plan.flow.Tasks) {
		t := &c.plan.flow.Tasks[call.Unit]
		if err := executor.PublishLeft(c.plan.dir, &execution.Task{ID: t.ID, Attempt: int(call.Attempt),
			Inputs: t.Inputs, Outputs: t.Outputs}); err != nil {
			return -1, err
		}
	}
	l := layout{c.plan.dir}
	return Process{
		Argv: argv, Dir: filepath.Join(l.path(executor.DataDir), s.Dir), Output: l.script(name, call.Post),
		Env: append(executor.BaseEnv(), corral.RunVariable+"="+strconv.FormatInt(int64(c.plan.run), 10),
			corral.IDVariable+"="+name),
	}.Run(ctx)
}

// macros returns DAGMan's macros for a script's command, with their values.
func macros(p *plan, name string, call execution.Call) map[string]string {
	n := strconv.Itoa
	all := map[string]string{
		"$JOB": name, "$NODE": name, "$RETRY": n(int(call.Try)), "$MAX_RETRIES": n(call.Retries),
		"$DAG_STATUS": n(call.Status), "$FAILED_COUNT": n(call.FailedCount),
		"$DAGID": strconv.FormatInt(int64(p.run), 10),
	}
	if call.Post {
		all["$RETURN"], all["$PRE_SCRIPT_RETURN"] = n(call.Return), n(call.PreReturn)
		all["$JOBID"] = fmt.Sprintf("%d.%d", p.run, call.Job)
	}
	return all
}

// scriptLinks returns links to the files that scripts need of the workflow's directory: those that words of their
// commands name.
func scriptLinks(flow *workflow.Workflow, dir string, written map[string]bool) (links []link) {
	for _, name := range flow.ScriptFiles() {
		source := filepath.Join(dir, name)
		if info, err := os.Stat(source); err == nil && info.Mode().IsRegular() && !written[name] {
			links = append(links, link{name, source})
		}
	}
	return links
}
