package archtest

import (
	"maps"
	"slices"
	"testing"
)

// layers lists every package, from the centre to the rim. A package imports from lower layers only,
// never from its own. examples/lambda stands below the demo that shows it.
var layers = [][]string{
	{"condor/classad", "condor/quote", "credential", "dag", "embedded", "internal/cgroup", "internal/descriptor", "internal/disk", "internal/fault", "internal/heap", "internal/input", "internal/netns", "internal/node", "internal/pause", "internal/proc", "internal/programs", "internal/resend", "internal/script", "internal/shell", "internal/slurm/notation", "internal/version", "internal/xdg", "resubmit", "sim/availability", "sim/chance", "task", "internal/spelling"},
	{"condor", "condor/eventlog", "condor/transfer", "internal/datasets", "internal/slurm/step", "internal/slurm/submission", "sim/queue", root},
	{"account"},
	{"broker", "ensemble/record", "broker/relay", "clustering", "cost", "gridsite", "internal/access", "internal/execution", "internal/firstfit", "internal/hedge", "internal/matching", "internal/order", "internal/baseline", "internal/queueing", "internal/replica", "selection", "internal/runas", "internal/slurm/job", "internal/usage", "packages", "sim/lublin", "sim/swf", "workflow", "profile/trace", "internal/dbcheck"},
	{"bench/peer", "embedded/wire", "gridsite/jobdir", "gridsite/local", "gridsite/ssh", "gridsite/survey", "internal/pilot/attempt", "internal/reconcile", "internal/store", "packages/htcondor", "plan", "profile", "staging", "workflow/array", "workflow/clustered", "workflow/dagman/submit", "workflow/dax", "workflow/makeflow", "workflow/wfformat", "internal/ptrace", "slot"},
	{"api", "embedded/executor", "embedded/link", "ensemble", "gridsite/fork", "gridsite/headnode", "gridsite/slurm", "internal/depot", "internal/picture", "internal/pilot/process", "internal/pilot/sitejob", "internal/schedd/client", "internal/metrics", "internal/recorded", "internal/store/storetest", "plan/validator", "planner/bound", "planner/drawn", "internal/ranking", "selection/ads", "sim", "staging/ftp", "staging/sftp", "workflow/dagman/job", "sim/advertiser", "sim/market", "planner/slotted"},
	{"embedded/parcel", "ensemble/drawn", "ensemble/recipe", "examples/lambda", "gridsite/gridsitetest", "internal/backup", "internal/central", "internal/follow", "internal/login", "internal/output", "internal/personal", "internal/report", "internal/request", "internal/slurm", "planner", "planner/baseline", "planner/dpds", "planner/spss", "workflow/dagman", "planner/besteffort", "planner/greedy", "planner/moga", "planner/virtual"},
	{"bench/rig", "planner/portfolio", "embedded/dispatch", "embedded/worker", "internal/demo", "internal/rerun", "internal/pilot/condorworker", "internal/rest", "internal/scale", "planner/montecarlo", "planner/revision", "sim/cloud", "workflow/format"},
	{"embedded/port", "internal/pilot", "internal/pilot/streamworker", "internal/provision", "internal/run", "internal/schedd", "internal/stream", "planner/rehearsal", "planner/algorithm"},
	{"internal/condorpool", "internal/booking", "internal/ensembles", "internal/gate", "internal/owners", "internal/prospect"},
	{"internal/draft", "internal/reach", "internal/outage"},
	{"internal/events", "internal/server/ensembles", "internal/server/backlogs", "internal/server/orphans", "internal/server/profiles", "internal/server/tasks", "internal/server/tokens", "internal/server/visits", "internal/server/usages", "internal/siterelay", "internal/server/owners"},
	{"internal/server"},
	{"internal/engine"},
	{"bench", "bench/ensembles", "bench/evidence", "bench/growth", "bench/load", "bench/schedules", "bench/shim", "bench/streams", "bench/traces", "cmd/corral", "cmd/corral-slurm", "cmd/corrald", "cmd/pilot", "examples/provision", "internal/archtest", "internal/archtest/english", "internal/e2e", "bench/slots"},
}

// edges lists, for each package, which of our packages it may import and why. Other imports are not allowed.
var edges = map[string]map[string]string{
	"condor/classad":      {},
	"condor/quote":        {},
	"credential":          {},
	"dag":                 {},
	"embedded":            {}, // its tests are of all its rooms together
	"internal/cgroup":     {},
	"internal/datasets":   {"internal/programs": "finds the top of the repository"},
	"internal/descriptor": {},
	"internal/disk":       {},
	"internal/fault":      {},
	"internal/input":      {}, // the caller, who knows the source of the input, gives errors their kind
	"internal/netns":      {},
	"internal/node":       {},
	"internal/pause":      {},
	"internal/proc":       {},
	"internal/programs":   {},
	"internal/resend":     {},
	"internal/spelling":   {},
	"internal/version":    {},
	"internal/xdg":        {},
	"resubmit":            {},
	"task":                {},

	"condor": {
		"internal/fault": "the door",
		"condor/classad": "ads of jobs and daemons", "condor/quote": "values of submit descriptions",
		"internal/shell": "a plugin's script",
	}, // HTCondor, and no noun of ours
	"condor/eventlog": {"condor/classad": "ads in events"},
	"condor/transfer": {"condor/classad": "what it tells HTCondor", "internal/pause": "before another try"},
	root: {
		"credential": "a site tells by what corrald logs in there", "resubmit": "a glidein holds its policy",
	},

	"plan": {
		"cost": "tariffs, budgets", "dag": "a workflow is a graph", "clustering": "which tasks are a job",
		"sim/availability": "a queue's room", root: "resources, seconds",
	},
	"plan/validator":  {"clustering": "whether any", "cost": "adds up", "plan": "what it checks", "sim/availability": "what is left of a room", root: "seconds"},
	"planner/bound":   {"plan": "problems"},
	"ensemble":        {"cost": "budgets, prices", "plan": "workflows", root: "error kinds"},
	"ensemble/record": {root: "ids, moves, seconds"},
	"internal/ensembles": {
		"api": "requests for runs and glideins", "cost": "budgets", "dag": "workflows", "ensemble": "what a policy sees and says",
		"ensemble/record": "what it carries out", "internal/access": "for whom it works", "internal/disk": "keeps workflows", "internal/order": "what a pilot keeps for leaving",
		"internal/provision": "what is known of a site", "internal/request": "places glideins", "internal/run": "makes runs",
		"internal/store": "ensembles, glideins, runs", "plan": "shapes of pilots", "planner/rehearsal": "what decides", "sim": "how runtimes err",
		"sim/cloud": "kinds of machines", "workflow": "workflows", "workflow/wfformat": "reads them", root: "glideins, runs, workers",
	},
	"internal/server/ensembles": {
		"api": "requests", "ensemble/record": "ensembles", "internal/access": "what a request may say of this host",
		"internal/ensembles": "drafts them", "internal/provision": "what is known of a site", "internal/request": "checks requests",
		"internal/rest": "answers requests", "internal/run": "checks runs", "internal/store": "keeps them", root: "sites, clusters",
	},
	"ensemble/drawn":  {"dag": "workflows", "ensemble": "what it draws", "plan": "workflows", root: "resources"},
	"slot":            {"cost": "prices", "internal/heap": "what ends next", "internal/input": "bounds what it reads", root: "error kinds"},
	"planner/slotted": {"cost": "what plans cost", "plan": "workflows", "slot": "what sites offer", root: "error kinds"},
	"planner/moga": {
		"cost": "points of a front", "ensemble": "trade-offs", "planner/slotted": "evaluates choices", root: "error kinds",
	},
	"planner/portfolio": {
		"cost": "what candidates come to", "ensemble": "trade-offs", "plan": "workflows", "planner/besteffort": "a candidate",
		"planner/greedy": "a candidate", "planner/moga": "a candidate", "planner/slotted": "schedules in pilots", "sim/advertiser": "what is free",
		"sim/market": "what others' waits cost", "sim/queue": "what is known of the site", "slot": "pilots as slots", root: "error kinds",
	},
	"planner/algorithm": {
		"cost": "what is spent", "ensemble": "trade-offs", "internal/execution": "where tasks ran", "internal/heap": "what ends next",
		"plan": "problems and plans", "plan/validator": "checks what is changed", "planner": "makes plans", "planner/greedy": "weighs places",
		"planner/moga": "chooses slots", "planner/montecarlo": "plays plans", "planner/slotted": "schedules in slots", "planner/virtual": "when to submit",
		"sim": "plays plans", "sim/advertiser": "slots of a room", "sim/availability": "rooms", "slot": "processor time", root: "error kinds, seconds",
	},
	"planner/virtual": {"cost": "prices", "ensemble": "a penalty's share", "slot": "processor time", root: "error kinds"},
	"planner/greedy": {
		"cost": "what is paid", "ensemble": "trade-offs", "planner/slotted": "the problem, and the order of tasks",
		"slot": "asks for prices", root: "error kinds",
	},
	"planner/besteffort": {
		"internal/heap": "what happens next", "planner/slotted": "the problem, and the order of tasks", "sim/queue": "plays jobs",
		root: "error kinds",
	},
	"ensemble/recipe": {"dag": "workflows", "plan": "workflows", root: "error kinds, resources"},
	"planner/rehearsal": {
		"cost": "budgets", "ensemble": "workflows, scores", "planner/dpds": "a candidate", "planner/spss": "a candidate",
		"sim": "how runtimes err", "sim/cloud": "plays them", root: "seconds",
	},
	"planner/dpds":  {"cost": "budgets", "ensemble": "machines, workflows, terms"},
	"planner/spss":  {"cost": "budgets", "ensemble": "workflows, plans, terms", "plan": "workflows"},
	"planner/drawn": {"dag": "workflows", "plan": "problems", root: "resources"},
	"planner": {
		"planner/bound": "how few cpus would do",
		"clustering":    "how tasks become jobs",
		"cost":          "adds up", "dag": "the graph turned round", "internal/firstfit": "where tasks fit", "internal/heap": "what is next", "plan": "problems and plans",
		"plan/validator": "checks each plan before it leaves",
		root:             "error kinds, seconds",
	},
	"planner/revision": {
		"clustering": "none, of what is left", "cost": "adds up", "dag": "what waits at a worker is joined to what runs there", "plan": "problems and plans",
		"planner": "looks ahead, and plans what is missing", root: "states of tasks",
	},
	"internal/picture": {"plan": "what it draws", root: "seconds, error kinds"},
	"internal/booking": {
		"cost": "prices", "ensemble": "trade-offs", "planner/moga": "decides", "planner/slotted": "what it decides about",
		root: "error kinds, seconds",
	},
	"internal/prospect": {
		"cost": "prices, budgets", "ensemble": "what it plays", "planner/dpds": "an algorithm", "planner/rehearsal": "an algorithm",
		"planner/spss": "an algorithm", "sim": "how runtimes err", "sim/cloud": "plays it", root: "error kinds, seconds",
	},
	"internal/report": {
		"ensemble/record": "ensembles",
		"api":             "tasks and ledgers", "cost": "what was billed", "internal/picture": "its pictures",
		"plan": "what was predicted", "workflow": "which tasks wait for which", root: "plans, runs, glideins",
	},
	"planner/baseline": {
		"internal/heap": "what is next", "plan": "the shape of a pilot", "sim": "is its control", root: "asks pilots to go",
	},
	"planner/montecarlo": {
		"planner/baseline": "what plans are compared with",
		"cost":             "what outcomes cost", "internal/execution": "the work that is played", "plan": "problems and plans",
		"planner": "judges its plans", "sim": "plays them", "sim/chance": "draws instants", "sim/queue": "how pilots wait",
		root: "seconds",
	},
	"internal/provision": {
		"internal/access": "for whom it works",
		"api":             "requests for glideins", "clustering": "what of a job's hop is a task's", "cost": "what a revision is predicted to cost",
		"internal/execution": "what is left of a run", "internal/hedge": "which of a pair goes", "internal/order": "what a pilot keeps for leaving",
		"internal/queueing": "estimates of waits",
		"internal/request":  "judges the requests of a revision", "internal/store": "releases plans",
		"plan": "problems and plans", "planner/revision": "decides", "profile": "estimates of tasks",
		"workflow": "what is planned", root: "sites, waits, glideins",
	},
	"api": {
		"ensemble/record": "ensembles",
		"account":         "tokens", "cost": "ledgers", "internal/input": "bounds answers", "internal/resend": "sends again what got no answer", "plan": "the goal of a plan", root: "the nouns double as wire types",
	},
	"broker":             {root: "broker modes, error kinds"},
	"broker/relay":       {"internal/disk": "replaces the note of its port", root: "error kinds"},
	"cost":               {"internal/input": "bounds what it reads", root: "error kinds"},
	"gridsite":           {"credential": "what a site let us in by", "internal/fault": "the door", "internal/shell": "commands to show", root: "the nouns, error kinds"},
	"clustering":         {"dag": "levels, chains, labels", root: "how tasks become jobs"},
	"account":            {root: "error kinds, moves, history"},
	"internal/access":    {"account": "tokens, roles, grants", root: "error kinds"},
	"internal/execution": {"dag": "ranks, frontier", "task": "causes", root: "counts and reports of runs, workers"},
	"internal/matching":  {root: "resources"},
	"internal/order":     {"internal/disk": "replaces reports", root: "outcomes and durations in the two files"},
	"internal/queueing":  {root: "waits"},
	"internal/reconcile": {
		"credential":        "what is not submitted with one",
		"internal/matching": "when workers stop", "internal/order": "what a pilot keeps for leaving",
		"internal/queueing": "how early to submit a successor",
		"resubmit":          "the rule for another attempt", root: "the world",
	},
	"internal/dbcheck": {"internal/input": "bounds what it reads"},
	"internal/runas":   {root: "error kinds"},
	"internal/usage":   {root: "ids of jobs"},
	"internal/store": {
		"internal/fault": "the door", "ensemble/record": "ensembles", "internal/dbcheck": "keeps what checks find",
		"account": "tokens", "cost": "ledgers", "internal/access": "whose objects a transaction sees", "internal/disk": "locks the database", "internal/input": "bounds the list of what was revoked",
		"internal/usage": "what was held and taken", root: "what it stores, and the rules by which it changes",
	},
	"packages": {"internal/input": "bounds archives", root: "platforms, error kinds"},
	"workflow/clustered": {
		"clustering": "which tasks share a job", "internal/shell": "words of scripts", "workflow": "what it changes",
		root: "error kinds",
	},
	"workflow": {"dag": "a workflow is a graph of tasks", root: "error kinds, seconds"},

	"embedded/wire": {
		"broker/relay": "one way in", "internal/execution": "jobs and their results",
		"internal/pause": "before another try", root: "error kinds, lost hosts",
	},
	"gridsite/jobdir": {
		"internal/fault": "the door",
		"gridsite":       "the contract", "internal/input": "bounds what sites send", "internal/shell": "commands of jobs",
		root: "error kinds",
	},
	"gridsite/local": {
		"gridsite": "the contract", "internal/input": "ends what is written with its context", root: "error kinds",
	},
	"gridsite/ssh": {
		"credential": "until when certificates are good",
		"gridsite":   "the contract", "internal/input": "bounds key files", "internal/shell": "command lines", root: "error kinds",
	},
	"gridsite/survey": {"internal/fault": "the door", "gridsite": "the contract", root: "facts of sites"},
	"internal/follow": {
		"ensemble/record": "shows ensembles", "api": "asks corrald", "internal/resend": "outlasts a restart", root: "shows runs"},
	"internal/slurm": {
		"api": "asks corrald", "internal/disk": "replaces notes", "internal/input": "bounds notes",
		"internal/pause": "before it asks again", "internal/slurm/job": "shows jobs",
		"internal/slurm/notation": "numbers of jobs", "internal/slurm/step": "orders of jobs",
		"internal/slurm/submission": "reads what sbatch is asked", "task": "what tasks are told",
		root: "error kinds, states of tasks",
	},
	"internal/slurm/step": {
		"internal/input": "bounds orders", "internal/proc": "what descends from a job", "internal/slurm/notation": "names of files",
		"task": "what workers tell tasks",
	},
	"internal/login": {
		"api": "questions on the wire", "gridsite": "questions of a login", root: "which site, error kinds",
	},
	"internal/personal": {
		"ensemble/record": "ends ensembles",
		"api":             "asks corrald", "internal/descriptor": "what corrald is not to have",
		"internal/input": "opens files of a user whom root examines", "internal/order": "tells worker jobs from others",
		"internal/dbcheck": "what the last check of the database found",
		"internal/runas":   "as whom root starts it",
		"internal/version": "compares programs", "internal/xdg": "where it lives", root: "error kinds",
	},
	"internal/pilot/attempt": {
		"internal/execution": "what a pilot that is to come offers", "internal/matching": "when workers stop",
		"internal/order": "what was ordered, and what is reported", "resubmit": "whether another attempt follows",
		root: "outcomes, lost hosts",
	},
	"internal/recorded": {
		"internal/reconcile": "what it makes of rows", "internal/store": "the rows", root: "kinds of jobs",
	},
	"internal/request": {
		"api": "what a request is", "clustering": "reads rules", "cost": "units of budgets",
		"ensemble/record": "a label", "gridsite": "contacts, batch systems",
		"account": "tokens", "internal/access": "who asks for a token", "internal/matching": "how long workers serve",
		"internal/order": "what a pilot keeps of its walltime", "plan": "objectives of plans", "resubmit": "reads policies",
		root: "nouns, error kinds",
	},
	"internal/store/storetest": {"internal/access": "an administrator", "internal/store": "opens a database for a test"},
	"packages/htcondor": {
		"internal/disk": "locks its cache", "internal/input": "bounds programs", "packages": "what it builds",
		root: "error kinds",
	},
	"profile": {
		"internal/input": "bounds what it reads", "profile/trace": "tasks that were traced",
		"workflow": "tasks that were measured", root: "error kinds",
	},
	"profile/trace":   {root: "error kinds"},
	"internal/ptrace": {"profile/trace": "what it makes", root: "error kinds"},
	"staging": {
		"internal/disk": "replaces indexes and signatures", "internal/input": "bounds what mirrors give",
		"packages": "what it installs", root: "error kinds",
	},
	"workflow/array": {
		"internal/shell": "words of scripts", "task": "what tasks are told", "workflow": "builds one",
		root: "resources, error kinds",
	},
	"workflow/dax": {
		"internal/input": "bounds what it reads", "workflow": "feeds its builder", root: "error kinds",
	},
	"workflow/makeflow": {
		"internal/input": "bounds what it reads", "workflow": "feeds its builder", root: "error kinds",
	},
	"workflow/dagman": {
		"condor/classad": "the workflow's name", "internal/input": "bounds what it reads", "workflow": "feeds its builder",
		"workflow/dagman/job": "tasks and jobs", "workflow/dagman/submit": "reads submit descriptions",
		root: "error kinds",
	},
	"workflow/dagman/job": {
		"condor/classad": "attributes of jobs", "condor/quote": "arguments, environments", "workflow": "tasks",
		"workflow/dagman/submit": "the commands of jobs",
	},
	"workflow/dagman/submit": {"internal/input": "bounds what it reads", "workflow": "places of errors"},
	"workflow/wfformat": {
		"internal/input": "bounds what it reads", "workflow": "feeds its builder", root: "error kinds",
	},

	"sim": {
		"credential":         "those of a site may expire",
		"internal/execution": "decides about tasks", "internal/matching": "decides about workers",
		"internal/order": "what a pilot is told", "internal/pilot/attempt": "decides about a pilot's stay",
		"internal/reconcile": "decides about attempts", "plan": "sites, pilots, clusters", "resubmit": "what is asked for",
		"sim/chance": "draws", "sim/queue": "decides how long pilots wait", root: "glideins, jobs, outcomes",
	},
	"sim/availability":  {},
	"internal/firstfit": {root: "resources"},
	"internal/hedge":    {root: "glideins"},
	"sim/chance":        {},
	"sim/market": {
		"cost": "prices", "sim/availability": "what is free", "sim/queue": "plans anew", "slot": "what it offers", root: "error kinds",
	},
	"sim/advertiser": {
		"cost": "prices", "sim/availability": "what is free", "sim/queue": "what is planned", "slot": "what it offers", root: "error kinds",
	},
	"sim/lublin": {"sim/queue": "its jobs"},
	"sim/swf":    {"internal/input": "bounds what it reads", "sim/queue": "its jobs", root: "error kinds"},
	"sim/queue":  {"internal/heap": "what ends next", "sim/availability": "what policies plan on"},
	"sim/cloud": {
		"cost": "what machines cost", "ensemble": "what it plays", "internal/heap": "what happens next", "sim": "how runtimes err",
		"sim/chance": "draws",
	},
	"internal/heap": {},
	"embedded/executor": {
		"embedded/wire": "reasons that fit into a message", "internal/cgroup": "measures tasks that run for long",
		"internal/disk":      "removes what tasks leave",
		"internal/execution": "jobs and their results", "internal/proc": "what tasks have of memory",
		"internal/ptrace": "watches tasks", "profile/trace": "leaves what was seen",
		"task": "what tasks are told", root: "error kinds",
	},
	"embedded/link":   {"embedded/wire": "dials in", root: "lost hosts, error kinds"},
	"examples/lambda": {}, // its test makes the workflow
	"examples/provision": { // what everybody may import, and no more
		"api": "asks corrald", "plan": "the goal", root: "nouns, error kinds",
	},
	"gridsite/fork": {
		"internal/fault": "the door",
		"gridsite":       "the contract", "gridsite/jobdir": "where its jobs are",
		"gridsite/survey": "what the machine has", root: "error kinds",
	},
	"gridsite/headnode": {
		"internal/fault": "the door",
		"gridsite":       "the contract", "gridsite/jobdir": "where tokens are replaced", root: "platforms, error kinds",
	},
	"gridsite/slurm": {
		"internal/fault": "the door",
		"gridsite":       "the contract", "gridsite/jobdir": "where its jobs are",
		"gridsite/survey": "what the cluster has", "internal/shell": "command lines", root: "what its options are called",
	},
	"internal/pilot/process": {
		"broker": "how a pool reaches a node", "internal/order": "what a worker of an HTCondor pool is told",
		"internal/pause": "between signs of life", "internal/pilot/attempt": "why workers leave",
		"internal/proc": "whom to end", root: "error kinds",
	},
	"internal/pilot/sitejob": {
		"internal/order": "reads orders, writes reports", "packages": "checks signatures",
		"staging": "installs packages", root: "outcomes",
	},
	"internal/depot": {
		"internal/fault": "the door",
		"gridsite":       "brings packages to sites", "internal/order": "orders of setup jobs, what mirrors did",
		"internal/reconcile": "what clusters need at a site", "internal/store": "the catalog",
		"internal/version": "names the worker package", "packages": "builds and checks packages",
		"packages/htcondor": "finds releases", "staging": "the mirror", root: "packages, mirrors, sites",
	},
	"internal/rest": {
		"api": "problems, lists, waits", "internal/access": "who asks", "internal/request": "reads bodies and queries",
		"internal/store": "a change is a transaction", root: "error kinds",
	},
	"staging/ftp": {"staging": "how it is asked", root: "error kinds"},
	"staging/sftp": {
		"gridsite": "who is not let in", "gridsite/ssh": "the transport", "staging": "how it is asked",
		root: "error kinds",
	},
	"workflow/format": {
		"internal/input": "opens and bounds files", "workflow": "what a reader returns",
		"workflow/dagman": "one of its formats", "workflow/dax": "another", "workflow/makeflow": "another",
		"workflow/wfformat": "another",
		root:                "error kinds",
	},

	"embedded/parcel": {
		"embedded/executor": "runs tasks away from their run, and lays out their directories",
		"embedded/wire":     "carries parcels", "internal/execution": "jobs and their results",
		"internal/input": "bounds descriptions of jobs", root: "what a job may have; kinds of errors",
	},
	"gridsite/gridsitetest": {
		"gridsite": "what every back end must do", "gridsite/fork": "runs jobs on this machine",
		"gridsite/local": "reaches this machine", "internal/programs": "finds the scripts", "internal/shell": "what jobs run",
		root: "kinds of errors tell whether anything was done",
	},
	"internal/demo": {
		"api": "asks corrald", "examples/lambda": "its input", "internal/follow": "progress",
		"internal/personal": "starts corrald", "internal/xdg": "a layout in a temporary folder",
		"plan": "says what corrald planned", root: "shows what it asked for",
	},

	"embedded/dispatch": {
		"embedded/executor": "what a stale worker may not do", "embedded/parcel": "files that travel",
		"embedded/wire": "speaks with workers", "internal/execution": "jobs and their results",
		"internal/matching": "which worker gets which job", root: "worker and run ids",
	},
	"embedded/worker": {
		"embedded/executor": "runs tasks", "embedded/parcel": "files that travel", "embedded/wire": "dials in",
		"internal/cgroup": "where its tasks' groups are", "internal/disk": "removes what parcels leave",
		"internal/execution": "jobs and their results", "internal/matching": "what is started when", root: "error kinds",
	},
	"internal/pilot/condorworker": {
		"broker": "how the pool reaches a node", "broker/relay": "a node's side",
		"condor": "runs a worker's daemons", "condor/classad": "the attributes of a slot",
		"condor/transfer": "arguments of its plugin",
		"embedded/parcel": "the tasks of jobs", "internal/disk": "removes what jobs leave",
		"internal/node": "measures the machine for the worker's ad", "internal/order": "what to join",
		"internal/pause":         "before another try",
		"internal/pilot/attempt": "why workers leave", "internal/pilot/process": "orders and words of workers",
		"internal/proc": "counts the machine's processes", "packages": "names a package", "staging": "finds a package", root: "error kinds",
	},

	"embedded/port": {
		"embedded/dispatch": "leads workers there", "embedded/wire": "admits",
		"internal/pause": "before another try", root: "attempts",
	},
	"internal/pilot": {
		"broker": "calls a node back for its host", "broker/relay": "the head node's side",
		"embedded/link": "to corrald", "embedded/wire": "how dialling fails",
		"embedded/worker": "the other kind of workers", "internal/disk": "removes what tasks leave",
		"internal/node": "checks the machine", "internal/order": "reads orders, writes reports",
		"internal/pause": "before another try", "internal/pilot/attempt": "decides", "internal/pilot/condorworker": "a kind of workers",
		"internal/pilot/process": "starts workers", "staging": "keeps packages that are in use", root: "outcomes",
	},
	"internal/run": {
		"internal/access": "for whom a run is looked at",
		"internal/output": "which file is asked for",
		"api":             "what a new run is made of", "embedded/dispatch": "sinks",
		"embedded/executor": "marks of directories, the environment of tasks", "embedded/parcel": "spools in runs' directories",
		"clustering": "which tasks are a job", "internal/disk": "where runs are", "internal/execution": "decides",
		"internal/input": "bounds what it reads of a run's directory", "internal/pause": "before another try",
		"internal/script": "runs scripts", "internal/store": "keeps runs", "profile": "what was measured",
		"profile/trace":  "what was seen of tasks",
		"internal/usage": "what tasks took",
		"internal/rerun": "what has to run again", "task": "what tasks are told", "dag": "graphs without edges",
		"workflow": "what to run", "workflow/dagman": "rescue files", "workflow/wfformat": "its document",
		root: "runs",
	},
	"internal/rerun": {
		"api": "what a new run is made of", "internal/input": "bounds what it reads",
		"workflow": "compares workflows", "workflow/dagman": "rescue files", root: "earlier runs",
	},
	"internal/output": {
		"api": "what it answers", "internal/pause": "between looks", root: "tasks, error kinds",
	},
	"internal/script":           {},
	"internal/shell":            {},
	"internal/slurm/notation":   {},
	"internal/slurm/submission": {"internal/slurm/notation": "what options say"},
	"internal/slurm/job":        {"internal/slurm/notation": "ids, times, sizes", "task": "causes", root: "states of tasks"},
	"internal/scale": {
		"api": "requests for glideins", "cost": "how far an allocation goes",
		"internal/execution": "when workers take no more",
		"internal/matching":  "what jobs need", "internal/order": "what a pilot keeps for leaving",
		"internal/pilot/attempt": "what pilots that are to come offer", "internal/request": "places glideins",
		"internal/store": "scales, glideins", root: "scales, glideins, workers",
	},
	"internal/schedd": {
		"condor": "submits jobs", "condor/classad": "jobs in the queue", "condor/eventlog": "what becomes of jobs",
		"embedded/dispatch": "sinks", "embedded/parcel": "the files of jobs",
		"internal/disk": "keeps what goes with jobs", "internal/execution": "jobs and their results",
		"internal/schedd/client": "asks for jobs", root: "runs",
	},
	"internal/schedd/client": {
		"condor": "its commands", "condor/classad": "jobs in the queue", "condor/eventlog": "numbers of jobs",
	},
	"internal/stream": {
		"condor": "submits worker jobs", "condor/classad": "jobs in the queue", "condor/eventlog": "numbers of jobs",
		"embedded/dispatch": "what worker jobs take their tasks from", "internal/disk": "replaces what goes with jobs",
		"internal/execution": "jobs and their results", "internal/input": "bounds what it reads",
		"internal/matching": "what waits", "internal/order": "what a worker job is told",
		"internal/pause": "between steps", "internal/schedd/client": "asks for jobs", root: "runs, workers",
	},
	"internal/pilot/streamworker": {
		"embedded/worker": "takes tasks", "internal/input": "bounds what it reads", "internal/node": "its GPUs and disk",
		"internal/order": "what it was told", "internal/pilot/condorworker": "its slot", root: "resources",
	},

	"internal/condorpool": {
		"internal/matching": "what jobs need",
		"condor":            "runs pools", "condor/classad": "slots, schedds", "internal/run": "queues of clusters",
		"internal/order": "tells worker jobs from others", "internal/stream": "queues of worker jobs",
		"internal/store": "which pools there are", root: "clusters, workers, tokens",
	},
	"internal/gate": {
		"internal/matching": "what jobs need",
		"broker/relay":      "requests that come by a relay", "embedded/dispatch": "counts workers",
		"embedded/port": "decides who is admitted", "embedded/wire": "roles",
		"internal/execution":     "says what a cluster offers",
		"internal/order":         "words of pilots",
		"internal/pilot/attempt": "what pilots that are to come offer", "internal/run": "queues of clusters",
		"internal/store": "what is recorded of attempts", "internal/stream": "who may come in for a worker job",
		root: "attempts, clusters, workers",
	},

	"internal/backup": {
		"api": "what is told of backups", "internal/dbcheck": "forgets what the check of the database of before found",
		"internal/disk": "puts names on the disk", "internal/input": "bounds what is read", "internal/runas": "whose state it is",
		"internal/store": "copies the database", "internal/version": "who wrote it", "internal/xdg": "where things are",
		root: "error kinds",
	},

	"internal/reach": {
		"broker": "attends probes", "credential": "by what corrald is let in", "gridsite": "the way to sites", "internal/depot": "the program of probes",
		"internal/gate": "tags, where workers dial in", "internal/order": "asks nodes what they see",
		"internal/store": "probes, facts of sites", root: "sites, error kinds",
	},

	"internal/siterelay": {
		"broker/relay": "corrald's side", "gridsite": "starts the relay at a site",
		"internal/depot": "the program of relays", "internal/gate": "decides which requests are admitted",
		"internal/reach": "the way to the site", "internal/reconcile": "the world",
		"internal/store": "records trouble", root: "sites, glideins",
	},

	"internal/engine": {
		"credential": "when to warn",
		"gridsite":   "submits and follows jobs", "internal/depot": "brings packages to sites",
		"internal/gate": "tokens, and the workers that are in", "internal/order": "writes orders, reads reports",
		"internal/reach": "the way to sites", "internal/reconcile": "decides",
		"internal/recorded": "reads what is decided about", "internal/siterelay": "a part of each site's loop",
		"internal/store": "the world", "packages": "compares versions", root: "sites, glideins, jobs",
	},
	"internal/draft": {
		"api": "requests for plans", "clustering": "how tasks become jobs", "internal/execution": "how far a run is", "internal/gate": "the workers that are there",
		"internal/provision": "problems for the planner", "internal/run": "profiles of earlier runs", "internal/store": "what is known of sites and runs",
		"plan": "problems and plans", "planner": "decides", "planner/algorithm": "makes plans", "planner/montecarlo": "simulates plans",
		"planner/virtual": "odds", "internal/queueing": "odds of waits", "internal/replica": "queues", "sim/queue": "queues",
		"profile": "what is known of tasks", "sim": "how runtimes err", "workflow": "how a document is read",
		"workflow/wfformat": "reads what is planned", root: "nouns",
	},
	"internal/server/backlogs": {
		"internal/reach": "the way to sites", "internal/rest": "answers requests",
		root: "sites, backlogs",
	},
	"selection":     {root: "error kinds"},
	"selection/ads": {"condor/classad": "writes texts", "selection": "what it writes", root: "error kinds"},
	"internal/ranking": {
		"cost": "tariffs", "internal/queueing": "how long pilots wait", "plan": "workflows", "profile": "how fast sites are", "selection": "costs and choice",
		root: "sites, waits",
	},
	"internal/baseline": {root: "error kinds"},
	"internal/replica":  {"sim/queue": "what it makes", root: "backlogs"},
	"internal/server/orphans": {
		"api": "the contract", "gridsite": "asks sites what they have", "internal/gate": "tags, tokens",
		"internal/order": "what pilots were told", "internal/reach": "the way to sites",
		"internal/rest": "answers requests", "internal/store": "what is known", root: "sites, glideins",
	},
	"internal/server/tasks": {
		"api": "the contract", "internal/output": "waits for what tasks print", "internal/request": "judges requests",
		"internal/rest": "answers requests", "internal/run": "has the tasks", "internal/store": "keeps answers", root: "runs",
	},
	"internal/server/profiles": {
		"api": "the contract", "internal/draft": "makes and merges them", "internal/request": "judges requests",
		"internal/rest": "answers requests", "internal/store": "keeps them", root: "profiles",
	},
	"internal/server/visits": {
		"gridsite": "contacts, who is not let in", "internal/access": "what is allowed, and how often",
		"internal/rest": "statuses", root: "error kinds",
	},
	"internal/owners": {
		"internal/access": "for whom it works",
		"account":         "owners", "ensemble/record": "ends ensembles", "internal/pause": "between looks", "internal/provision": "releases plans",
		"internal/scale": "ends scales", "internal/store": "what they have", root: "sites, clusters, glideins, runs",
	},
	"internal/server/owners": {
		"account": "owners", "api": "the contract", "internal/access": "whom nothing ends", "internal/owners": "what an end waits for",
		"internal/rest": "answers requests", "internal/store": "keeps them", root: "error kinds",
	},
	"internal/server/tokens": {
		"account": "tokens", "api": "the contract", "internal/access": "who may make which", "internal/request": "judges requests",
		"internal/rest": "answers requests", "internal/store": "keeps them", root: "error kinds",
	},
	"internal/central": {
		"account": "tokens", "api": "problems", "credential": "when to warn", "internal/access": "decides",
		"internal/pause": "between looks", "internal/store": "knows tokens", root: "error kinds",
	},
	"internal/events": {
		"account": "a listener's token", "internal/access": "who sees what", "api": "events on the wire", "internal/pause": "between looks", "internal/rest": "answers requests",
		"internal/store": "says what changed", root: "sites, glideins, runs",
	},
	"internal/metrics": {
		"internal/dbcheck": "what the last check of the database found",
		"credential":       "until when credentials are good", "internal/pause": "before another look", "internal/store": "what is there, and its history", root: "states, phases",
	},
	"internal/server/usages": {
		"api": "the contract", "internal/rest": "answers requests", "internal/store": "what was held and taken",
		"internal/usage": "adds it up",
	},
	"internal/outage": {
		"internal/gate": "which workers are expected", "internal/store": "histories", root: "when an outage begins and ends",
	},
	"internal/server": {
		"internal/outage":    "what is out of reach",
		"internal/ensembles": "where their workflows are", "internal/server/ensembles": "answers about ensembles",
		"internal/access": "what a request may say of this host", "internal/server/profiles": "answers about profiles",
		"internal/server/tokens": "answers about tokens", "internal/server/visits": "bounds visits",
		"internal/server/owners": "answers about owners",
		"internal/events":        "tells what changes", "internal/metrics": "answers Prometheus",
		"internal/server/usages": "adds up core-hours",
		"api":                    "the contract", "condor": "where it can be", "gridsite": "contacts, whom a site does not let in",
		"internal/depot": "the catalog", "internal/draft": "makes plans", "internal/gate": "who is registered",
		"internal/login": "keeps logins", "internal/provision": "glideins of a plan, ledgers",
		"internal/queueing": "statistics of waits", "internal/reconcile": "what becomes of a glidein next",
		"internal/recorded": "what that depends on",
		"internal/reach":    "goes to sites", "internal/request": "judges requests", "internal/rest": "answers requests",
		"internal/run": "starts runs", "internal/scale": "ends scales",
		"internal/server/backlogs": "answers about queues", "internal/server/orphans": "answers about orphans", "internal/server/tasks": "answers about tasks of runs",
		"internal/store": "everything else",
		"packages":       "orders versions", "plan": "reads plans", root: "nouns",
	},
	"bench/peer": {},
	"bench/rig": {
		"api": "asks corrald", "internal/personal": "starts corrald", "internal/xdg": "a layout in a temporary folder",
	},
	"bench": {
		"api": "asks corrald", "bench/peer": "others beside Corral", "bench/rig": "begins and ends", "cost": "budgets",
		"internal/disk": "where it measures", "internal/personal": "names what every corrald has", "plan": "reads plans",
		"planner/revision": "the words of news", "internal/version": "names what it measured",
		"workflow": "makes workflows", "workflow/wfformat": "writes them", root: "runs and their reports",
	},
	"bench/growth": {
		"bench/rig": "begins and ends", "internal/execution": "ranks and drains", "workflow": "makes workflows", "workflow/wfformat": "writes and reads them",
		root: "counts of tasks",
	},
	"bench/shim": {"bench/rig": "begins and ends, starts corrald"}, // and nothing but commands that users have
	"bench/schedules": {
		"api": "asks corrald", "bench/rig": "begins and ends, starts corrald", "clustering": "how tasks become jobs",
		"dag": "list schedules", "internal/execution": "the work that is played",
		"internal/heap": "what happens next", "internal/personal": "names what every corrald has",
		"plan": "a cluster and a site", "resubmit": "blocks that follow each other", "sim": "plays workflows",
		"sim/chance": "draws runtimes", "sim/lublin": "draws other people's jobs", "sim/queue": "plays jobs one by one",
		"workflow": "makes workflows", "workflow/format": "reads published ones", "workflow/wfformat": "writes them",
		root: "runs and their reports",
	},
	"bench/load":    {"api": "the name of a header", "bench/rig": "a user's corrald", root: "ids"},
	"bench/streams": {"api": "times of tasks", "bench/rig": "begins and ends, starts corrald", root: "reports of runs"},
	"bench/traces":  {"bench/rig": "begins and ends", "internal/ptrace": "what it measures", "profile/trace": "its modes"},
	"bench/ensembles": {
		"internal/picture": "draws figures",
		"bench/rig":        "how a program begins and ends", "cost": "budgets", "ensemble": "what is compared on",
		"ensemble/recipe": "draws workflows", "plan": "workflows", "planner/dpds": "is compared", "planner/rehearsal": "is compared",
		"planner/spss": "is compared", "sim": "how runtimes err", "sim/cloud": "plays them", "workflow": "reads workflows",
		"workflow/format": "reads workflows", root: "resources",
	},
	"bench/slots": {
		"bench/rig": "how a program begins and ends", "cost": "prices", "ensemble": "trade-offs",
		"ensemble/recipe": "draws workflows", "internal/picture": "draws plots", "internal/queueing": "predicts waits", "plan": "workflows", "planner/algorithm": "is compared", "planner/virtual": "is compared", "planner/portfolio": "chooses among them", "planner/besteffort": "is compared", "planner/greedy": "is compared", "planner/moga": "is compared",
		"planner/slotted": "problems", "sim/advertiser": "sites", "sim/market": "sites that price", "sim/chance": "copies of traces", "sim/lublin": "draws jobs",
		"sim/queue": "plays jobs", "sim/swf": "reads traces", "slot": "what is offered", "selection": "is compared", "planner": "is compared", "planner/montecarlo": "plays plans", "clustering": "none", "resubmit": "pilots that end early", "sim": "plays pilots", root: "waits",
	},
	"bench/evidence": {
		"bench/rig": "begins and ends", "cost": "a tariff", "internal/picture": "its plots", "internal/provision": "what is known of waits",
		"plan": "problems and plans", "planner": "makes plans", "planner/bound": "beside plans",
		"planner/drawn":      "problems for its cases",
		"planner/montecarlo": "judges and compares them", "profile": "estimates of tasks", "sim": "how runtimes differ",
		"workflow": "published ones", "workflow/format": "reads them", root: "waits, resources, seconds",
	},
	"cmd/corral": {
		"internal/spelling": "which command was meant",
		"credential":        "whether a site's have expired",
		"ensemble":          "verb ensemble", "internal/prospect": "verb ensemble", "ensemble/record": "verb ensemble",
		"internal/booking": "verb slots", "planner/besteffort": "verb slots", "planner/moga": "verb slots",
		"planner/slotted": "verb slots", "sim/advertiser": "verb slots", "slot": "verb slots", "internal/queueing": "verb site wait", "internal/replica": "verb site slots", "internal/ranking": "verb site rank", "internal/baseline": "verb profile baseline", "planner/portfolio": "flag --compare", "planner/virtual": "flag --start-by", "sim/market": "verb site price",
		"account": "verb token", "api": "asks corrald", "clustering": "whether it was left to corrald", "cost": "budgets", "internal/demo": "verb demo", "internal/follow": "progress",
		"internal/input": "bounds the files that a command names", "internal/pause": "before it listens again", "internal/personal": "verbs up and down",
		"internal/picture": "draws plans", "internal/report": "verb report", "internal/shell": "lines for eval", "internal/slurm": "verb shim", "internal/version": "--version", "internal/xdg": "default paths", "packages": "describes archives",
		"packages/htcondor": "verb package build", "plan": "prints plans", "plan/validator": "verb plan validate", "profile": "profiles in files",
		"planner/montecarlo": "verb simulate", "sim": "verb simulate", "sim/lublin": "a background for it",
		"sim/queue": "the queue of one", "sim/swf": "reads one",
		"internal/ptrace": "verb profile trace", "profile/trace": "shows traces, and reads them",
		"workflow":           "verb workflow",
		"workflow/array":     "verb submit",
		"workflow/clustered": "clusters what it converts",
		"workflow/dagman":    "rescue files",
		"workflow/format":    "reads any format", "workflow/wfformat": "writes what it sends",
		root: "prints the nouns",
	},
	"cmd/corrald": {
		"internal/spelling":  "which setting was meant",
		"internal/ensembles": "carries ensembles out", "internal/owners": "ends accounts",
		"internal/fault":     "the door",
		"internal/access":    "names of owners",
		"internal/central":   "lets others in",
		"internal/scale":     "keeps workers at what queues can use",
		"internal/provision": "releases plans",
		"api":                "paths", "broker": "calls pilots back", "condor": "commands of a pool, passed on",
		"embedded/dispatch": "terms of clusters", "embedded/port": "wires it",
		"embedded/wire": "the port's certificate", "gridsite": "its own address", "gridsite/fork": "wires it",
		"gridsite/headnode": "wires it", "gridsite/local": "wires it", "gridsite/slurm": "wires it",
		"gridsite/ssh": "wires it", "internal/condorpool": "wires it", "internal/depot": "wires it",
		"internal/backup": "verbs of admin", "internal/descriptor": "what its jobs are not to have", "internal/engine": "wires it",
		"internal/gate": "wires it", "internal/metrics": "wires it", "internal/outage": "wires it",
		"internal/input": "bounds the pilot binary", "internal/node": "machine", "internal/personal": "state file",
		"internal/reach": "wires it", "internal/run": "wires it", "internal/runas": "is who it is told to be", "internal/schedd": "wires it", "internal/stream": "wires it",
		"internal/rest":   "the least speed of bodies",
		"internal/server": "wires it", "internal/store": "wires it", "internal/version": "--version",
		"internal/xdg": "default paths", "packages": "signing key", "staging": "serves the mirror",
		"staging/ftp": "wires it", "staging/sftp": "wires it", root: "machine",
	},
	"cmd/pilot": {
		"condor/transfer":     "a command of HTCondor's",
		"internal/descriptor": "what tasks are not to have", "internal/order": "how a job ended",
		"internal/pilot": "wires it", "internal/pilot/condorworker": "the program of jobs",
		"internal/pilot/process": "names of commands", "internal/pilot/sitejob": "wires it",
		"internal/pilot/streamworker": "the program of worker jobs", "internal/slurm/step": "the program of a batch job",
		"internal/version": "--version", root: "exit status",
	},
	"cmd/corral-slurm":          {"internal/slurm": "all that it does"},
	"internal/archtest":         {},
	"internal/archtest/english": {},
	"internal/e2e":              {},
}

// used returns what each package of ours imports of ours, tests left out.
func used(t *testing.T) map[string][]string {
	t.Helper()
	imports := map[string][]string{}
	for _, f := range source(t, production) {
		ours, _ := f.imports()
		imports[f.pkg] = append(imports[f.pkg], ours...)
	}
	return imports
}

func layerOf(pkg string) int {
	return slices.IndexFunc(layers, func(l []string) bool { return slices.Contains(l, pkg) })
}

func TestImports(t *testing.T) {
	imports := used(t)
	for _, pkg := range slices.Sorted(maps.Keys(imports)) {
		allowed, known := edges[pkg]
		if !known || layerOf(pkg) < 0 {
			t.Errorf("%s is new: give it a place in layers and its imports in edges (edges_test.go)", pkg)
			continue
		}
		for _, to := range slices.Compact(slices.Sorted(slices.Values(imports[pkg]))) {
			if _, ok := allowed[to]; !ok {
				t.Errorf("%s imports %s, which edges (edges_test.go) does not allow", pkg, to)
			}
		}
	}
}

func TestEdgesPointDown(t *testing.T) {
	for pkg, allowed := range edges {
		for to, why := range allowed {
			if layerOf(to) < 0 || layerOf(to) >= layerOf(pkg) {
				t.Errorf("edge %s → %s: from layer %d to layer %d, want downward", pkg, to, layerOf(pkg), layerOf(to))
			}
			if why == "" {
				t.Errorf("edge %s → %s has no reason", pkg, to)
			}
		}
	}
}

func TestNoEdgeTooMany(t *testing.T) {
	imports := used(t)
	for pkg, allowed := range edges {
		if _, exists := imports[pkg]; !exists {
			t.Errorf("edges names %s, which does not exist", pkg)
		}
		for to := range allowed {
			if !slices.Contains(imports[pkg], to) {
				t.Errorf("edge %s → %s is not used any longer: remove it", pkg, to)
			}
		}
	}
}
