-- Times are integer milliseconds since 1970 UTC (…_at_ms), durations integer milliseconds (…_ms).
-- A check that yields null passes: terms about times that may be missing rely on that.
-- Objects are not deleted: a state DELETED is a tombstone, and ids are never used again.
-- Rows refer to each other by id, never by name: a name may come to mean another object, or another owner's.
-- Queries repeat the conditions of partial indexes word by word: SQLite uses such an index only then.


-- Sites, and what corrald knows of their nodes.

create table sites (
	id             integer primary key autoincrement,
	name           text not null check (name <> ''),
	owner          text not null check (owner <> ''),
	contact        text not null check (contact <> ''),
	root           text not null check (root = '' or root glob '/*'),

	-- Batch systems: of pilots, and of setup and cleanup jobs.
	batch          text not null check (batch <> ''),
	head_batch     text not null default 'fork' check (head_batch <> ''),

	-- Options for the batch system, and limits. The column features has what the options call a constraint, which is a
	-- keyword of SQL.
	queue          text not null default '',
	account        text not null default '',
	qos            text not null default '',
	features       text not null default '',
	site_options   text check (json_type(site_options) = 'array'),
	max_queued     integer not null default 0 check (max_queued >= 0),
	max_running    integer not null default 0 check (max_running >= 0),

	-- What the site charges, and how much may be spent there.
	price          text not null default '',
	billing        text not null default '',
	allocation     text not null default ''
		constraint allocation_has_a_unit check (allocation = '' or allocation glob '*[0-9]*[a-zA-Z]'),

	-- What a probe found, and the pilot package that is installed.
	os             text not null,
	arch           text not null,
	libc           text not null,
	facts          text check (json_type(facts) = 'object'),
	package        text not null,
	package_digest text not null,

	-- Why corrald cannot reach the site, and why its relay does not run.
	login_needed   integer not null default 0 check (login_needed in (0, 1)),
	trouble        text not null default '' check (trouble <> '' or login_needed = 0),
	trouble_at_ms  integer check ((trouble = '') = (trouble_at_ms is null)),
	relay_trouble  text not null default '',

	state          text not null check (
		state in ('NEW', 'STAGING', 'READY', 'EXITING', 'REMOVING', 'DELETED', 'FAILED')),
	reason         text not null,
	created_at_ms  integer not null,
	updated_at_ms  integer not null,
	constraint package_with_digest check ((package = '') = (package_digest = '')),
	constraint times_in_order check (updated_at_ms >= created_at_ms)
) strict;

-- Each owner has names of their own: a conflict must not reveal what others call theirs.
create unique index sites_name on sites (owner, name) where state <> 'DELETED';

-- Losses of attempts on a node count only if they are later than cleared_at_ms: then a worker started on the node, or a
-- user cleared it. Names are without their domains.
create table nodes (
	site_id       integer not null references sites (id),
	name          text not null check (name <> '' and instr(name, '.') = 0),
	cleared_at_ms integer not null,
	primary key (site_id, name)
) strict, without rowid;

-- Jobs that probe a site. The request that submits one also ends it, so a row without its job is soon removed.
create table probes (
	tag     text not null primary key check (tag <> ''),
	site_id integer not null references sites (id)
) strict, without rowid;

create index probes_site on probes (site_id);


-- Clusters: pools of workers.

create table clusters (
	id             integer primary key autoincrement,
	name           text not null check (name <> ''),
	owner          text not null check (owner <> ''),
	kind           text not null check (kind in ('embedded', 'condor')),
	attached       integer not null check (attached in (0, 1)),
	collector      text not null,
	schedd         text not null,
	schedd_address text not null default '' check (schedd_address = '' or attached = 1),
	htcondor       text not null,
	version        text not null,
	state          text not null check (
		state in ('STARTING', 'READY', 'STOPPING', 'STOPPED', 'REMOVING', 'DELETED', 'FAILED')),
	reason         text not null,
	created_at_ms  integer not null,
	updated_at_ms  integer not null,
	constraint pool_only_if_condor check (
		kind = 'condor' or (attached = 0 and collector || schedd || htcondor || version = '')),
	constraint embedded_has_no_daemons check (kind = 'condor' or state in ('READY', 'REMOVING', 'DELETED')),
	constraint schedd_only_if_attached check (attached = 1 or schedd = ''),
	constraint times_in_order check (updated_at_ms >= created_at_ms)
) strict;

create unique index clusters_name on clusters (owner, name) where state <> 'DELETED';

-- Clusters that get workers as their queue needs them. The id is the cluster's, which has at most one scale.
create table scales (
	id            integer primary key references clusters (id),
	owner         text not null check (owner <> ''),
	sites         text not null check (json_type(sites) = 'array' and json_array_length(sites) > 0), -- ids
	min_cpus      integer not null check (min_cpus >= 0),
	max_cpus      integer not null check (max_cpus >= min_cpus),
	cpus          integer not null check (cpus between 1 and max_cpus), -- of each worker
	walltime_ms   integer not null check (walltime_ms > 0),
	idle_ms       integer not null check (idle_ms > 0),
	report        text not null,
	created_at_ms integer not null,
	updated_at_ms integer not null,
	constraint times_in_order check (updated_at_ms >= created_at_ms)
) strict;


-- Glideins, and the jobs that corrald submits for them.

create table glideins (
	id                      integer primary key autoincrement,
	owner                   text not null check (owner <> ''),
	site_id                 integer not null references sites (id),
	cluster_id              integer not null references clusters (id),

	-- Its pilots.
	hosts                   integer not null check (hosts > 0),
	cpus                    integer not null check (cpus > 0),
	memory_mib              integer not null check (memory_mib >= 0),
	gpus                    integer not null default 0 check (gpus >= 0),
	walltime_ms             integer not null check (walltime_ms > 0),
	idle_ms                 integer not null check (idle_ms >= 0),
	min_stay_ms             integer not null check (min_stay_ms >= 0),
	-- The speed of the hosts that the plan assumed, by which the estimates of tasks are divided; 0 means 1.
	speed                   real not null default 0 check (speed >= 0 and speed <= 1),
	overlap_ms              integer not null check (overlap_ms >= 0),
	queue_timeout_ms        integer not null default 604800000 check (queue_timeout_ms > 0), -- a week

	-- Workers of an HTCondor pool.
	broker                  text not null default '' check (broker in ('', 'auto', 'none', 'ccb', 'relay')),
	ccb                     text check (json_type(ccb) = 'array'),
	slots                   text not null default '' check (slots in ('', 'partitionable', 'static')),

	-- Options for the batch system, as in sites.
	queue                   text not null default '',
	account                 text not null default '',
	qos                     text not null default '',
	features                text not null default '',
	site_options            text check (json_type(site_options) = 'array'),

	-- When to submit it. One that takes over from another is wanted follows_after_ms after that one's start, with a
	-- planned wait in the queue of follows_wait_ms.
	not_before_at_ms        integer,
	follows_id              integer references glideins (id),
	follows_after_ms        integer not null default 0 check (follows_after_ms >= 0),
	follows_wait_ms         integer not null default 0 check (follows_wait_ms >= 0),

	resubmit_mode           text not null check (resubmit_mode in ('never', 'times', 'until', 'forever')),
	resubmit_limit          integer not null check (resubmit_limit >= 0),
	resubmit_deadline_at_ms integer,
	retries                 integer not null check (retries >= 0),

	labels                  text check (json_type(labels) = 'object'),
	asked                   text not null check (asked in ('', 'drain', 'cancel')),
	state                   text not null check (
		state in ('NEW', 'WAITING', 'ACTIVE', 'FINISHED', 'FAILED', 'REMOVING', 'DELETED')),
	reason                  text not null,
	created_at_ms           integer not null,
	updated_at_ms           integer not null,
	constraint limit_iff_times check ((resubmit_mode = 'times') = (resubmit_limit > 0)),
	constraint deadline_iff_until check ((resubmit_mode = 'until') = (resubmit_deadline_at_ms is not null)),
	constraint gone_only_if_asked check (state not in ('REMOVING', 'DELETED') or asked <> ''),
	constraint times_in_order check (updated_at_ms >= created_at_ms),
	unique (id, site_id) -- what a job refers to: an attempt runs at its glidein's site
) strict;

-- Live glideins by the time until which they wait for nothing else: their own, or the end of their resubmission if that
-- is earlier; 0 if corrald must look at them now. One that takes over from another waits for that one, whatever the
-- clock says.
create index glideins_live on glideins (
	site_id,
	case
		when state = 'WAITING' and follows_id is null
		then coalesce(min(not_before_at_ms, coalesce(resubmit_deadline_at_ms, not_before_at_ms)), 0)
		else 0
	end
) where state in ('NEW', 'WAITING', 'ACTIVE', 'REMOVING');

create index glideins_cluster on glideins (cluster_id) where state in ('NEW', 'WAITING', 'ACTIVE', 'REMOVING');
create index glideins_owner on glideins (owner); -- for lists of an owner's

-- For the limit on an owner's glideins, which are counted whenever the owner creates one.
create index glideins_open on glideins (owner, state) where state in ('NEW', 'WAITING', 'ACTIVE', 'REMOVING');

-- corrald looks at each plan that it carries out once a second, with the glideins of the plan.
create index glideins_plan on glideins (json_extract(labels, '$.plan'))
	where json_extract(labels, '$.plan') is not null;

create table jobs (
	id               integer primary key autoincrement,
	kind             text not null check (kind in ('setup', 'pilot', 'cleanup')),
	site_id          integer not null references sites (id),
	glidein_id       integer,
	number           integer not null check (number > 0),
	tag              text not null unique check (tag <> ''),
	site_job_id      text not null,

	-- The package that a setup job installs; '' is the site's own.
	package_digest   text not null default '' check (
		package_digest = '' or (kind = 'setup' and length(package_digest) = 71 and package_digest glob 'sha256:*')),

	-- The batch system's queue that an attempt was submitted to. Its wait counts for that queue, even if the site has
	-- another one later.
	queue            text not null default '' check (queue = '' or kind = 'pilot'),

	asked            text not null check (asked in ('', 'drain', 'cancel')),
	state            text not null check (state in ('NEW', 'SUBMITTED', 'QUEUED', 'RUNNING', 'ENDED')),
	reason           text not null,

	-- How it ended. The failure says what has to happen before another try is worth it.
	outcome          text check (outcome in (
		'done', 'expired', 'idle', 'drained', 'removed', 'preempted', 'failed', 'lost', 'duplicate')),
	transient        integer not null check (transient in (0, 1)),
	failure          text not null default '' check (
		failure = '' or failure in ('quota', 'authentication') and transient = 1),
	exit_status      integer,

	-- The workers of an attempt, and the hosts that it has to do without.
	workers          integer not null check (workers >= 0),
	lost             text check (lost is null or json_type(lost) = 'array' and kind = 'pilot'),

	-- The process that may start workers, and the SHA-256, in hex, of the secret that it has made and gives to them.
	lease_holder     text not null,
	session_digest   text not null default '' check (session_digest = '' or lease_holder <> ''),
	token_digest     text not null check (
		token_digest = '' or (length(token_digest) = 64 and token_digest not glob '*[^0-9a-f]*')),
	token_ends_at_ms integer,

	summed           integer not null default 0 check ( -- whether spendings include it
		summed = 0 or summed = 1 and kind = 'pilot' and state = 'ENDED'),
	created_at_ms    integer not null,
	submitted_at_ms  integer,
	started_at_ms    integer,
	ended_at_ms      integer,
	updated_at_ms    integer not null,
	foreign key (glidein_id, site_id) references glideins (id, site_id),
	constraint pilot_iff_glidein check ((kind = 'pilot') = (glidein_id is not null)),
	constraint pilot_if_workers check (kind = 'pilot' or (workers = 0 and lease_holder = '' and token_digest = '')),
	constraint token_iff_end check ((token_digest = '') = (token_ends_at_ms is null)),
	constraint ended_iff_outcome check ((state = 'ENDED') = (outcome is not null)),
	constraint ended_iff_ended_at check ((state = 'ENDED') = (ended_at_ms is not null)),
	constraint exit_only_if_ended check (state = 'ENDED' or (exit_status is null and transient = 0)),
	constraint running_has_start check (state <> 'RUNNING' or started_at_ms is not null),
	constraint start_only_if_running check (started_at_ms is null or state in ('RUNNING', 'ENDED')),
	constraint started_is_submitted check (started_at_ms is null or submitted_at_ms is not null),
	constraint known_to_site_is_submitted check (state in ('NEW', 'ENDED') or submitted_at_ms is not null),
	constraint new_is_not_submitted check (state <> 'NEW' or submitted_at_ms is null),
	constraint times_in_order check (
		created_at_ms <= submitted_at_ms
		and created_at_ms <= ended_at_ms
		and submitted_at_ms <= started_at_ms
		and submitted_at_ms <= ended_at_ms
		and started_at_ms <= ended_at_ms
		and ended_at_ms <= updated_at_ms
		and started_at_ms <= updated_at_ms
		and submitted_at_ms <= updated_at_ms
		and created_at_ms <= updated_at_ms)
) strict;

create unique index jobs_attempt on jobs (glidein_id, number); -- null, of other kinds, differs from null
create unique index jobs_number on jobs (site_id, kind, number) where kind <> 'pilot';
create unique index jobs_one_of_site on jobs (site_id, kind) where kind <> 'pilot' and state <> 'ENDED';
create index jobs_live on jobs (site_id) where state <> 'ENDED';

-- The past of a site: every attempt that it ever had may match, so each question has an index of its own.
create index jobs_attempts_over on jobs (site_id, ended_at_ms) where kind = 'pilot' and state = 'ENDED';
create index jobs_lost on jobs (site_id, updated_at_ms) where lost is not null;
create index jobs_waits on jobs (site_id, submitted_at_ms) where kind = 'pilot' and submitted_at_ms is not null;
create index jobs_unsummed on jobs (site_id) where kind = 'pilot' and started_at_ms is not null and summed = 0;
create index jobs_holdings on jobs (site_id, glidein_id, started_at_ms, ended_at_ms)
	where kind = 'pilot' and started_at_ms is not null;

-- Tokens by which pilots' workers join HTCondor pools.
create table pool_tokens (
	id            text not null primary key check (id <> ''),
	cluster_id    integer not null references clusters (id),
	job_id        integer not null references jobs (id),
	ends_at_ms    integer not null,
	revoked_at_ms integer
) strict, without rowid;

create index pool_tokens_valid on pool_tokens (cluster_id) where revoked_at_ms is null;
create index pool_tokens_job on pool_tokens (job_id);


-- Pilot packages, and the mirrors that have them.

create table packages (
	id            integer primary key autoincrement,
	name          text not null check (name <> ''),
	owner         text not null check (owner <> ''),
	what          text not null check (what <> ''),
	version       text not null check (version <> ''),
	os            text not null check (os <> ''),
	arch          text not null check (arch <> ''),
	libc          text not null check (libc <> ''),
	digest        text not null check (
		length(digest) = 71 and digest glob 'sha256:*' and substr(digest, 8) not glob '*[^0-9a-f]*'),
	size_bytes    integer not null check (size_bytes > 0),
	key           text not null check (key <> ''),
	signature     text not null check (signature <> ''),
	state         text not null check (state in ('READY', 'DELETED')),
	reason        text not null,
	created_at_ms integer not null,
	updated_at_ms integer not null,
	constraint times_in_order check (updated_at_ms >= created_at_ms)
) strict;

create unique index packages_digest on packages (digest) where state <> 'DELETED';

create table mirrors (
	id             integer primary key autoincrement,
	name           text not null check (name <> ''),
	owner          text not null check (owner <> ''),
	url            text not null check (url <> ''),
	successes      real not null check (successes >= 0), -- decayed
	failures       real not null check (failures >= 0),  -- decayed
	bytes_per_s    real not null check (bytes_per_s >= 0),
	measured_at_ms integer,
	checked_at_ms  integer,
	state          text not null check (state in ('READY', 'DELETED')),
	reason         text not null,
	created_at_ms  integer not null,
	updated_at_ms  integer not null,
	constraint measured_iff_tried check ((measured_at_ms is null) = (successes + failures = 0)),
	constraint times_in_order check (updated_at_ms >= created_at_ms)
) strict;

create unique index mirrors_name on mirrors (name) where state <> 'DELETED';
create unique index mirrors_url on mirrors (url) where state <> 'DELETED';

-- The packages that each mirror listed when corrald last read its index. Replicas are not objects: they have neither
-- history nor tombstone.
create table replicas (
	mirror_id  integer not null references mirrors (id),
	package_id integer not null references packages (id),
	primary key (mirror_id, package_id)
) strict, without rowid;

create index replicas_package on replicas (package_id);


-- Runs of workflows, profiles of their tasks, plans, and ensembles.

create table runs (
	id             integer primary key autoincrement,
	owner          text not null check (owner <> ''),
	cluster_id     integer not null references clusters (id),
	workflow       text not null check (workflow <> ''),
	dir            text not null check (dir <> ''),
	options        text not null check (json_type(options) = 'object'),
	labels         text check (json_type(labels) = 'object'),
	tasks_total    integer not null check (tasks_total >= 0),
	tasks_waiting  integer not null check (tasks_waiting >= 0),
	tasks_ready    integer not null check (tasks_ready >= 0),
	tasks_running  integer not null check (tasks_running >= 0),
	tasks_done     integer not null check (tasks_done >= 0),
	tasks_failed   integer not null check (tasks_failed >= 0),
	tasks_skipped  integer not null check (tasks_skipped >= 0),
	report         text check (json_type(report) = 'object'),
	state          text not null check (
		state in ('RUNNING', 'CANCELLING', 'SUCCEEDED', 'FAILED', 'STALLED', 'CANCELLED', 'DELETED')),
	reason         text not null,
	created_at_ms  integer not null,
	ended_at_ms    integer,
	updated_at_ms  integer not null,
	constraint over_iff_ended_at check ((state in ('RUNNING', 'CANCELLING')) = (ended_at_ms is null)),
	constraint report_only_if_over check (report is null or ended_at_ms is not null),
	constraint tasks_add_up check (
		tasks_total = tasks_waiting + tasks_ready + tasks_running + tasks_done + tasks_failed + tasks_skipped),
	constraint times_in_order check (
		created_at_ms <= updated_at_ms and created_at_ms <= ended_at_ms and ended_at_ms <= updated_at_ms)
) strict;

-- Two runs in one directory would overwrite each other's journal.
create unique index runs_dir on runs (dir) where state <> 'DELETED';
create index runs_live on runs (cluster_id) where state in ('RUNNING', 'CANCELLING');

-- For lists of an owner's runs, for the limits on their number, for what earlier runs of a workflow learned, and for the
-- runs of a plan: see glideins.
create index runs_owner on runs (owner);
create index runs_kept on runs (owner, state) where state <> 'DELETED';
create index runs_memory on runs (owner, workflow) where json_extract(report, '$.learned_memory') is not null;
create index runs_plan on runs (json_extract(labels, '$.plan')) where json_extract(labels, '$.plan') is not null;

-- Measurements of the tasks of each kind, which owners keep by name. A tombstone has no document, which may be
-- megabytes.
create table profiles (
	id            integer primary key autoincrement,
	name          text not null check (name <> ''),
	owner         text not null check (owner <> ''),
	sources       text not null check (json_type(sources) = 'array' and json_array_length(sources) > 0),
	runs          integer not null check (runs >= 0),
	kinds         integer not null check (kinds > 0),
	tasks         integer not null check (tasks > 0),
	digest        text not null check (
		length(digest) = 71 and digest glob 'sha256:*' and substr(digest, 8) not glob '*[^0-9a-f]*'),
	document      text check (json_type(document) = 'object'),
	state         text not null check (state in ('READY', 'DELETED')),
	created_at_ms integer not null,
	updated_at_ms integer not null,
	constraint document_until_deleted check ((document is null) = (state = 'DELETED')),
	constraint times_in_order check (updated_at_ms >= created_at_ms)
) strict;

create unique index profiles_name on profiles (owner, name) where state <> 'DELETED';

-- A glidein or run that belongs to a plan has the plan's id as a label.
create table plans (
	id            integer primary key autoincrement,
	owner         text not null check (owner <> ''),
	cluster_id    integer not null references clusters (id),
	workflow      text not null,
	digest        text not null check (
		length(digest) = 71 and digest glob 'sha256:*' and substr(digest, 8) not glob '*[^0-9a-f]*'),
	document      text not null check (json_type(document) = 'object'),
	sites         text check (json_type(sites) = 'object'), -- the ids of the sites that the document names
	auto          integer not null default 0 check (auto in (0, 1)), -- corrald revises it while its run goes on
	state         text not null check (state in ('INFEASIBLE', 'READY', 'PROVISIONED', 'RELEASED', 'DELETED')),
	reason        text not null,
	created_at_ms integer not null,
	began_at_ms   integer,
	updated_at_ms integer not null,
	constraint began_iff_provisioned check (state <> 'PROVISIONED' or began_at_ms is not null),
	constraint times_in_order check (updated_at_ms >= created_at_ms)
) strict;

-- The plans that corrald carries out, which it looks at once a second.
create index plans_provisioned on plans (id) where state = 'PROVISIONED';
create index plans_kept on plans (owner, state) where state <> 'DELETED'; -- for the limit on their number

create table plan_revisions (
	id       integer primary key autoincrement,
	plan_id  integer not null references plans (id),
	number   integer not null check (number > 0),
	at_ms    integer not null,
	document text not null check (json_type(document) = 'object'),
	unique (plan_id, number)
) strict;

-- Several workflows that share one budget and one deadline.
create table ensembles (
	id            integer primary key autoincrement,
	name          text not null check (name <> ''),
	owner         text not null check (owner <> ''),
	cluster_id    integer not null references clusters (id),
	goal          text not null check (json_type(goal) = 'object'),
	pilots        text not null check (json_type(pilots) = 'object'),
	choice        text not null check (json_type(choice) = 'object'),
	members       text not null check (json_type(members) = 'array' and json_array_length(members) > 0),
	files         text not null unique check (files <> ''),
	steps         integer not null check (steps >= 0),
	spent         text not null,
	state         text not null check (state in ('RUNNING', 'ENDING', 'ENDED', 'DELETED')),
	reason        text not null,
	created_at_ms integer not null,
	ended_at_ms   integer,
	updated_at_ms integer not null,
	constraint ended_iff_ended_at check ((state in ('RUNNING', 'ENDING')) = (ended_at_ms is null)),
	constraint times_in_order check (
		created_at_ms <= updated_at_ms and created_at_ms <= ended_at_ms and ended_at_ms <= updated_at_ms)
) strict;

create index ensembles_open on ensembles (id) where state in ('RUNNING', 'ENDING');
create index ensembles_kept on ensembles (owner, state) where state <> 'DELETED'; -- for the limit on their number


-- Spending: reserved, made, and used by tasks. Amounts are in millionths of the unit of the site's price.

-- What a pilot of a plan may cost. Each pilot has its own reservation, so that the part that it does not use is free
-- when it ends, without a settlement.
create table reservations (
	glidein_id integer primary key references glideins (id),
	amount     integer not null check (amount >= 0)
) strict;

-- The cost of attempts that are over, per site and plan. Each attempt is added once, so that a look at a plan and a
-- reservation need not read all past attempts.
create table spendings (
	site_id   integer not null references sites (id),
	plan_id   integer not null check (plan_id >= 0), -- 0: pilots that do not belong to a plan
	used      integer not null check (used >= 0),
	billed    integer not null check (billed >= 0),
	used_ms   integer not null check (used_ms >= 0), -- of a cpu
	billed_ms integer not null check (billed_ms >= 0),
	primary key (site_id, plan_id)
) strict, without rowid;

-- The terms that the spendings at a site were computed with. If the site has others, all is added up again.
create table spending_terms (
	site_id integer primary key references sites (id),
	price   text not null,
	billing text not null
) strict;

-- Cpu time that tasks used on the pilots that ran them: per run, attempt and hour. The rows of a run follow from its
-- journal, which replaces them and never adds to them: so a crash neither loses nor doubles usage.
create table usage (
	run_id  integer not null references runs (id),
	job_id  integer not null check (job_id >= 0), -- an attempt; 0: cpus that did not come from a pilot
	hour    integer not null check (hour >= 0), -- since 1970 UTC
	used_ms integer not null check (used_ms >= 0), -- of a cpu
	lost_ms integer not null check (lost_ms >= 0), -- part of it that had to run again
	primary key (run_id, job_id, hour)
) strict, without rowid;

create index usage_hour on usage (hour);


-- Who may use corrald, and what was done.

-- Owners whose account was suspended or ended. An owner without a row is ACTIVE.
create table owners (
	id            integer primary key autoincrement,
	name          text not null unique check (name <> ''),
	state         text not null check (state in ('ACTIVE', 'SUSPENDED', 'ENDING', 'ENDED')),
	reason        text not null,
	moved_by      text not null,
	created_at_ms integer not null,
	updated_at_ms integer not null,
	constraint times_in_order check (updated_at_ms >= created_at_ms)
) strict;

-- Tokens of the API of a central corrald, by the digest of their text. Revoking one revokes those that were made with
-- it, whose parent it is.
create table tokens (
	id            integer primary key autoincrement,
	name          text not null check (name <> ''),
	owner         text not null check (owner <> ''),
	parent_id     integer references tokens (id),
	role          text not null check (role in ('user', 'administrator')),
	scopes        text check (json_type(scopes) = 'array'),
	grants        text check (json_type(grants) = 'array'),
	digest        text not null unique check (
		length(digest) = 71 and digest glob 'sha256:*' and substr(digest, 8) not glob '*[^0-9a-f]*'),
	expires_at_ms integer,
	state         text not null check (state in ('VALID', 'REVOKED')),
	reason        text not null,
	created_at_ms integer not null,
	updated_at_ms integer not null,
	constraint times_in_order check (updated_at_ms >= created_at_ms)
) strict;

create unique index tokens_name on tokens (owner, name) where state <> 'REVOKED';
create index tokens_parent on tokens (parent_id) where parent_id is not null;

-- Every change of the state of an object.
create table history (
	id         integer primary key autoincrement,
	at_ms      integer not null,
	actor      text not null check (actor <> ''),
	object     text not null check (object in (
		'site', 'glidein', 'job', 'cluster', 'run', 'package', 'mirror', 'plan', 'profile', 'token', 'ensemble',
		'owner')),
	object_id  integer not null check (object_id > 0),
	event      text not null check (event <> ''),
	from_state text not null, -- empty for the first entry
	to_state   text not null check (to_state <> ''),
	reason     text not null
) strict;

create index history_object on history (object, object_id);

-- Answers to requests that carried an Idempotency-Key.
create table answers (
	actor   text not null check (actor <> ''),
	key     text not null check (key <> ''),
	request text not null check (length(request) = 64),
	status  integer not null check (status between 100 and 599),
	body    blob not null,
	at_ms   integer not null,
	primary key (actor, key)
) strict, without rowid;

create index answers_age on answers (at_ms);
