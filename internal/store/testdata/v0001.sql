pragma foreign_keys = off;
CREATE TABLE answers (
	actor   text not null check (actor <> ''),
	key     text not null check (key <> ''),
	request text not null check (length(request) = 64),
	status  integer not null check (status between 100 and 599),
	body    blob not null,
	at_ms   integer not null,
	primary key (actor, key)
) strict, without rowid;

CREATE TABLE clusters (
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

CREATE TABLE ensembles (
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

CREATE TABLE glideins (
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

CREATE TABLE history (
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

CREATE TABLE jobs (
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

CREATE TABLE mirrors (
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

CREATE TABLE nodes (
	site_id       integer not null references sites (id),
	name          text not null check (name <> '' and instr(name, '.') = 0),
	cleared_at_ms integer not null,
	primary key (site_id, name)
) strict, without rowid;

CREATE TABLE owners (
	id            integer primary key autoincrement,
	name          text not null unique check (name <> ''),
	state         text not null check (state in ('ACTIVE', 'SUSPENDED', 'ENDING', 'ENDED')),
	reason        text not null,
	moved_by      text not null,
	created_at_ms integer not null,
	updated_at_ms integer not null,
	constraint times_in_order check (updated_at_ms >= created_at_ms)
) strict;

CREATE TABLE packages (
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

CREATE TABLE plan_revisions (
	id       integer primary key autoincrement,
	plan_id  integer not null references plans (id),
	number   integer not null check (number > 0),
	at_ms    integer not null,
	document text not null check (json_type(document) = 'object'),
	unique (plan_id, number)
) strict;

CREATE TABLE plans (
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

CREATE TABLE pool_tokens (
	id            text not null primary key check (id <> ''),
	cluster_id    integer not null references clusters (id),
	job_id        integer not null references jobs (id),
	ends_at_ms    integer not null,
	revoked_at_ms integer
) strict, without rowid;

CREATE TABLE probes (
	tag     text not null primary key check (tag <> ''),
	site_id integer not null references sites (id)
) strict, without rowid;

CREATE TABLE profiles (
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

CREATE TABLE replicas (
	mirror_id  integer not null references mirrors (id),
	package_id integer not null references packages (id),
	primary key (mirror_id, package_id)
) strict, without rowid;

CREATE TABLE reservations (
	glidein_id integer primary key references glideins (id),
	amount     integer not null check (amount >= 0)
) strict;

CREATE TABLE runs (
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

CREATE TABLE scales (
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

CREATE TABLE sites (
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

CREATE TABLE spending_terms (
	site_id integer primary key references sites (id),
	price   text not null,
	billing text not null
) strict;

CREATE TABLE spendings (
	site_id   integer not null references sites (id),
	plan_id   integer not null check (plan_id >= 0), -- 0: pilots that do not belong to a plan
	used      integer not null check (used >= 0),
	billed    integer not null check (billed >= 0),
	used_ms   integer not null check (used_ms >= 0), -- of a cpu
	billed_ms integer not null check (billed_ms >= 0),
	primary key (site_id, plan_id)
) strict, without rowid;

CREATE TABLE tokens (
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

CREATE TABLE usage (
	run_id  integer not null references runs (id),
	job_id  integer not null check (job_id >= 0), -- an attempt; 0: cpus that did not come from a pilot
	hour    integer not null check (hour >= 0), -- since 1970 UTC
	used_ms integer not null check (used_ms >= 0), -- of a cpu
	lost_ms integer not null check (lost_ms >= 0), -- part of it that had to run again
	primary key (run_id, job_id, hour)
) strict, without rowid;

CREATE INDEX answers_age on answers (at_ms);

CREATE UNIQUE INDEX clusters_name on clusters (owner, name) where state <> 'DELETED';

CREATE INDEX ensembles_kept on ensembles (owner, state) where state <> 'DELETED';

CREATE INDEX ensembles_open on ensembles (id) where state in ('RUNNING', 'ENDING');

CREATE INDEX glideins_cluster on glideins (cluster_id) where state in ('NEW', 'WAITING', 'ACTIVE', 'REMOVING');

CREATE INDEX glideins_live on glideins (
	site_id,
	case
		when state = 'WAITING' and follows_id is null
		then coalesce(min(not_before_at_ms, coalesce(resubmit_deadline_at_ms, not_before_at_ms)), 0)
		else 0
	end
) where state in ('NEW', 'WAITING', 'ACTIVE', 'REMOVING');

CREATE INDEX glideins_open on glideins (owner, state) where state in ('NEW', 'WAITING', 'ACTIVE', 'REMOVING');

CREATE INDEX glideins_owner on glideins (owner);

CREATE INDEX glideins_plan on glideins (json_extract(labels, '$.plan'))
	where json_extract(labels, '$.plan') is not null;

CREATE INDEX history_object on history (object, object_id);

CREATE UNIQUE INDEX jobs_attempt on jobs (glidein_id, number);

CREATE INDEX jobs_attempts_over on jobs (site_id, ended_at_ms) where kind = 'pilot' and state = 'ENDED';

CREATE INDEX jobs_holdings on jobs (site_id, glidein_id, started_at_ms, ended_at_ms)
	where kind = 'pilot' and started_at_ms is not null;

CREATE INDEX jobs_live on jobs (site_id) where state <> 'ENDED';

CREATE INDEX jobs_lost on jobs (site_id, updated_at_ms) where lost is not null;

CREATE UNIQUE INDEX jobs_number on jobs (site_id, kind, number) where kind <> 'pilot';

CREATE UNIQUE INDEX jobs_one_of_site on jobs (site_id, kind) where kind <> 'pilot' and state <> 'ENDED';

CREATE INDEX jobs_unsummed on jobs (site_id) where kind = 'pilot' and started_at_ms is not null and summed = 0;

CREATE INDEX jobs_waits on jobs (site_id, submitted_at_ms) where kind = 'pilot' and submitted_at_ms is not null;

CREATE UNIQUE INDEX mirrors_name on mirrors (name) where state <> 'DELETED';

CREATE UNIQUE INDEX mirrors_url on mirrors (url) where state <> 'DELETED';

CREATE UNIQUE INDEX packages_digest on packages (digest) where state <> 'DELETED';

CREATE INDEX plans_kept on plans (owner, state) where state <> 'DELETED';

CREATE INDEX plans_provisioned on plans (id) where state = 'PROVISIONED';

CREATE INDEX pool_tokens_job on pool_tokens (job_id);

CREATE INDEX pool_tokens_valid on pool_tokens (cluster_id) where revoked_at_ms is null;

CREATE INDEX probes_site on probes (site_id);

CREATE UNIQUE INDEX profiles_name on profiles (owner, name) where state <> 'DELETED';

CREATE INDEX replicas_package on replicas (package_id);

CREATE UNIQUE INDEX runs_dir on runs (dir) where state <> 'DELETED';

CREATE INDEX runs_kept on runs (owner, state) where state <> 'DELETED';

CREATE INDEX runs_live on runs (cluster_id) where state in ('RUNNING', 'CANCELLING');

CREATE INDEX runs_memory on runs (owner, workflow) where json_extract(report, '$.learned_memory') is not null;

CREATE INDEX runs_owner on runs (owner);

CREATE INDEX runs_plan on runs (json_extract(labels, '$.plan')) where json_extract(labels, '$.plan') is not null;

CREATE UNIQUE INDEX sites_name on sites (owner, name) where state <> 'DELETED';

CREATE UNIQUE INDEX tokens_name on tokens (owner, name) where state <> 'REVOKED';

CREATE INDEX tokens_parent on tokens (parent_id) where parent_id is not null;

CREATE INDEX usage_hour on usage (hour);

pragma user_version = 26;
insert into answers values ('ada', 'k', 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', 200, X'', 1795992285916);
insert into clusters values (1, 'default', 'ada', 'embedded', 0, '', '', '', '', '', 'READY', '', 1795992285880, 1795992285880);
insert into clusters values (2, 'other', 'ada', 'condor', 0, '', '', '', '', '', 'STARTING', '', 1795992285916, 1795992285916);
insert into ensembles values (1, 'night', 'ada', 1, '{"budget":"2ch","deadline_s":1200,"algorithm":"rehearsal","error":"","seed":0}', '{"site":"local","site_id":1,"cpus":2,"walltime_s":3600,"most":4,"delay_s":0,"leaving_s":0,"price":"","billing":"","interval_s":0}', '{"algorithm":"dpds"}', '[{"workflow":"a","tasks":3,"runtime_s":0,"standing":"waiting"}]', 'night', 0, '0ch', 'RUNNING', '', 1795992285946, NULL, 1795992285946);
insert into glideins values (1, 'ada', 1, 1, 2, 4, 2048, 0, 3600000, 0, 0, 0.0, 0, 604800000, '', NULL, '', '', '', '', '', NULL, NULL, NULL, 0, 0, 'never', 0, NULL, 0, NULL, '', 'FINISHED', 'attempt 1 expired: as the test wants (no resubmission requested)', 1795992285893, 1795992285906);
insert into glideins values (2, 'ada', 1, 1, 2, 4, 2048, 0, 3600000, 0, 0, 0.0, 0, 604800000, '', NULL, '', '', '', '', '', NULL, NULL, NULL, 0, 0, 'never', 0, NULL, 0, NULL, '', 'ACTIVE', 'attempt 1 RUNNING', 1795992285909, 1795992285914);
insert into glideins values (3, 'ada', 1, 1, 1, 1, 2048, 0, 3600000, 0, 0, 0.0, 0, 604800000, '', NULL, '', '', '', '', '', NULL, NULL, NULL, 0, 0, 'never', 0, NULL, 0, '{"plan":"2"}', '', 'WAITING', 'to be submitted', 1795992285931, 1795992285931);
insert into glideins values (4, 'ada', 1, 1, 2, 4, 2048, 0, 3600000, 0, 0, 0.5, 0, 604800000, '', NULL, '', '', '', '', '', NULL, 1927857906007, 1, 3600000, 60000, 'never', 0, NULL, 0, '{"team":"seismo"}', 'drain', 'DELETED', 'removed', 1795992285938, 1795992285948);
insert into history values (1, 1795992285880, 'ada', 'site', 1, 'create', '', 'NEW', '');
insert into history values (2, 1795992285880, 'ada', 'site', 1, 'stage', 'NEW', 'STAGING', 'first of all');
insert into history values (3, 1795992285880, 'ada', 'site', 1, 'staged', 'STAGING', 'READY', 'installed');
insert into history values (4, 1795992285880, 'ada', 'cluster', 1, 'create', '', 'READY', '');
insert into history values (5, 1795992285893, 'ada', 'glidein', 1, 'create', '', 'NEW', '');
insert into history values (6, 1795992285893, 'ada', 'glidein', 1, 'derive', 'NEW', 'WAITING', 'to be submitted');
insert into history values (7, 1795992285895, 'ada', 'job', 1, 'create', '', 'NEW', '');
insert into history values (8, 1795992285895, 'ada', 'glidein', 1, 'derive', 'WAITING', 'ACTIVE', 'attempt 1 NEW');
insert into history values (9, 1795992285898, 'ada', 'job', 1, 'submit', 'NEW', 'SUBMITTED', '');
insert into history values (10, 1795992285898, 'ada', 'glidein', 1, 'derive', 'ACTIVE', 'ACTIVE', 'attempt 1 SUBMITTED');
insert into history values (11, 1795992285900, 'ada', 'job', 1, 'start', 'SUBMITTED', 'RUNNING', '');
insert into history values (12, 1795992285900, 'ada', 'glidein', 1, 'derive', 'ACTIVE', 'ACTIVE', 'attempt 1 RUNNING');
insert into history values (13, 1795992285906, 'ada', 'job', 1, 'end', 'RUNNING', 'ENDED', 'as the test wants');
insert into history values (14, 1795992285906, 'ada', 'glidein', 1, 'derive', 'ACTIVE', 'FINISHED', 'attempt 1 expired: as the test wants (no resubmission requested)');
insert into history values (15, 1795992285909, 'ada', 'glidein', 2, 'create', '', 'NEW', '');
insert into history values (16, 1795992285909, 'ada', 'glidein', 2, 'derive', 'NEW', 'WAITING', 'to be submitted');
insert into history values (17, 1795992285910, 'ada', 'job', 2, 'create', '', 'NEW', '');
insert into history values (18, 1795992285910, 'ada', 'glidein', 2, 'derive', 'WAITING', 'ACTIVE', 'attempt 1 NEW');
insert into history values (19, 1795992285912, 'ada', 'job', 2, 'submit', 'NEW', 'SUBMITTED', '');
insert into history values (20, 1795992285912, 'ada', 'glidein', 2, 'derive', 'ACTIVE', 'ACTIVE', 'attempt 1 SUBMITTED');
insert into history values (21, 1795992285914, 'ada', 'job', 2, 'start', 'SUBMITTED', 'RUNNING', '');
insert into history values (22, 1795992285914, 'ada', 'glidein', 2, 'derive', 'ACTIVE', 'ACTIVE', 'attempt 1 RUNNING');
insert into history values (23, 1795992285915, 'ada', 'job', 3, 'create', '', 'NEW', '');
insert into history values (24, 1795992285916, 'ada', 'job', 4, 'create', '', 'NEW', '');
insert into history values (25, 1795992285916, 'ada', 'site', 2, 'create', '', 'NEW', '');
insert into history values (26, 1795992285916, 'ada', 'cluster', 2, 'create', '', 'STARTING', '');
insert into history values (27, 1795992285922, 'ada', 'package', 1, 'create', '', 'READY', '');
insert into history values (28, 1795992285922, 'ada', 'package', 2, 'create', '', 'READY', '');
insert into history values (29, 1795992285922, 'ada', 'mirror', 1, 'create', '', 'READY', '');
insert into history values (30, 1795992285923, 'ada', 'mirror', 2, 'create', '', 'READY', '');
insert into history values (31, 1795992285923, 'ada', 'mirror', 1, 'check', 'READY', 'READY', '');
insert into history values (32, 1795992285923, 'ada', 'run', 1, 'create', '', 'RUNNING', '');
insert into history values (33, 1795992285924, 'ada', 'run', 2, 'create', '', 'RUNNING', '');
insert into history values (34, 1795992285924, 'ada', 'profile', 1, 'create', '', 'READY', '');
insert into history values (35, 1795992285925, 'ada', 'profile', 2, 'create', '', 'READY', '');
insert into history values (36, 1795992285925, 'ada', 'plan', 1, 'create', '', 'READY', '');
insert into history values (37, 1795992285929, 'ada', 'plan', 2, 'create', '', 'READY', '');
insert into history values (38, 1795992285929, 'ada', 'plan', 2, 'provision', 'READY', 'PROVISIONED', '');
insert into history values (39, 1795992285931, 'ada', 'glidein', 3, 'create', '', 'NEW', '');
insert into history values (40, 1795992285931, 'ada', 'glidein', 3, 'derive', 'NEW', 'WAITING', 'to be submitted');
insert into history values (41, 1795992285934, 'ada', 'plan', 2, 'revise', 'PROVISIONED', 'PROVISIONED', 'behind; one is idle');
insert into history values (42, 1795992285936, 'ada', 'run', 2, 'fail', 'RUNNING', 'FAILED', '');
insert into history values (43, 1795992285938, 'ada', 'cluster', 1, 'scale', 'READY', 'READY', '1 to 8 cpus at , in workers of 2 cpus for 1h0m0s');
insert into history values (44, 1795992285938, 'ada', 'glidein', 4, 'create', '', 'NEW', '');
insert into history values (45, 1795992285938, 'ada', 'glidein', 4, 'derive', 'NEW', 'WAITING', 'not before 2031-02-03T04:05:06Z, to take over from glidein 1');
insert into history values (46, 1795992285942, 'ada', 'token', 1, 'create', '', 'VALID', '');
insert into history values (47, 1795992285943, 'ada', 'token', 2, 'create', '', 'VALID', '');
insert into history values (48, 1795992285943, 'ada', 'owner', 1, 'create', '', 'ACTIVE', '');
insert into history values (49, 1795992285943, 'ada', 'owner', 1, 'suspend', 'ACTIVE', 'SUSPENDED', 'on leave');
insert into history values (50, 1795992285946, 'ada', 'ensemble', 1, 'create', '', 'RUNNING', '');
insert into history values (51, 1795992285948, 'ada', 'glidein', 4, 'drain', 'WAITING', 'WAITING', 'not needed');
insert into history values (52, 1795992285948, 'ada', 'glidein', 4, 'derive', 'WAITING', 'DELETED', 'removed');
insert into jobs values (1, 'pilot', 1, 1, 1, 'tag-135', '4711', '', '', '', 'ENDED', 'as the test wants', 'expired', 0, '', NULL, 0, NULL, '', '', '', NULL, 1, 1795992285895, 1795992285898, 1795992285900, 1795992285906, 1795992285906);
insert into jobs values (2, 'pilot', 1, 2, 1, 'tag-136', '4711', '', '', '', 'RUNNING', '', NULL, 0, '', NULL, 0, NULL, '', '', '', NULL, 0, 1795992285910, 1795992285912, 1795992285914, NULL, 1795992285914);
insert into jobs values (3, 'pilot', 1, 2, 2, 'tag-137', '', '', '', '', 'NEW', '', NULL, 0, '', NULL, 0, NULL, '', '', '', NULL, 0, 1795992285915, NULL, NULL, NULL, 1795992285915);
insert into jobs values (4, 'setup', 1, NULL, 1, 'setup', '', '', '', '', 'NEW', '', NULL, 0, '', NULL, 0, NULL, '', '', '', NULL, 0, 1795992285916, NULL, NULL, NULL, 1795992285916);
insert into mirrors values (1, 'one', 'ada', 'file:///one', 0.0, 0.0, 0.0, NULL, 1795992285923, 'READY', '', 1795992285922, 1795992285923);
insert into mirrors values (2, 'other', 'ada', 'file:///other', 0.0, 0.0, 0.0, NULL, NULL, 'READY', '', 1795992285923, 1795992285923);
insert into nodes values (1, 'n1', 1795992285916);
insert into owners values (1, 'bob', 'SUSPENDED', 'on leave', 'ada', 1795992285943, 1795992285943);
insert into packages values (1, 'p-1-x86_64-linux-static', 'ada', 'p', '1', 'linux', 'x86_64', 'static', 'sha256:1111111111111111111111111111111111111111111111111111111111111111', 7, 'ed25519:k', 's', 'READY', '', 1795992285922, 1795992285922);
insert into packages values (2, 'p-1-x86_64-linux-static', 'ada', 'p', '1', 'linux', 'x86_64', 'static', 'sha256:2222222222222222222222222222222222222222222222222222222222222222', 7, 'ed25519:k', 's', 'READY', '', 1795992285922, 1795992285922);
insert into plan_revisions values (1, 2, 1, 1795992285934, '{"reasons":["behind","one is idle"],"news":"late","added":[{"pilot":1,"glidein_id":2,"site":"local","hosts":1,"cpus":2}],"dropped":[{"pilot":0,"glidein_id":1,"site":"local","hosts":1,"cpus":1,"ask":"drain"}],"predicted_end_s":90,"complete":true,"predicted_cost":"0.5ch"}');
insert into plans values (1, 'ada', 1, 'lambda', 'sha256:1111111111111111111111111111111111111111111111111111111111111111', '{"feasible":true}', NULL, 0, 'READY', '', 1795992285925, NULL, 1795992285925);
insert into plans values (2, 'ada', 1, 'lambda', 'sha256:1111111111111111111111111111111111111111111111111111111111111111', '{"feasible":true}', NULL, 0, 'PROVISIONED', '', 1795992285929, 1795992285929, 1795992285929);
insert into pool_tokens values ('worker-1', 2, 2, 1927857906007, NULL);
insert into probes values ('probe-1', 1);
insert into profiles values (1, 'seismic', 'ada', '["run:1"]', 1, 2, 30, 'sha256:1111111111111111111111111111111111111111111111111111111111111111', '{"version":1}', 'READY', 1795992285924, 1795992285924);
insert into profiles values (2, 'other', 'ada', '["run:1"]', 1, 2, 30, 'sha256:1111111111111111111111111111111111111111111111111111111111111111', '{"version":1}', 'READY', 1795992285925, 1795992285925);
insert into replicas values (1, 1);
insert into reservations values (3, 12500000);
insert into runs values (1, 'ada', 1, 'lambda', '/runs/1', '{"clustering":"","retries":0,"stall_s":0,"default_runtime_s":0}', NULL, 0, 0, 0, 0, 0, 0, 0, NULL, 'RUNNING', '', 1795992285923, NULL, 1795992285923);
insert into runs values (2, 'ada', 1, 'lambda', '/runs/2', '{"clustering":"","retries":0,"stall_s":0,"default_runtime_s":0}', NULL, 3, 0, 0, 0, 2, 1, 0, '{"makespan_s":0,"cumulative_task_time_s":0,"cpus":2,"parallelism":0,"critical_path_s":0,"lower_bound_s":0,"list_schedule_s":0,"makespan_over_lower_bound":0,"makespan_over_list_schedule":0,"lost_work_s":0,"requeued":0,"retries_used":0,"wait_for_workers_s":0}', 'FAILED', '', 1795992285924, 1795992285936, 1795992285951);
insert into scales values (1, 'ada', '[1]', 1, 8, 2, 3600000, 60000, '', 1795992285938, 1795992285938);
insert into sites values (1, 'local', 'ada', 'local:', '/srv/corral', 'fork', 'fork', 'long', '', '', '', '["--exclusive"]', 3, 10, '0.04USD/cpu-hour', '1h', '50USD', '', '', '', '{"at":"2026-11-29T22:44:45.88Z","batch":"slurm 22.05.8","queues":[{"name":"long","max_nodes":4}],"free_mib":0}', 'embedded-1.0', 'sha256:00', 1, 'no key', 1795992285880, '', 'READY', 'installed', 1795992285880, 1795992285951);
insert into sites values (2, 'other', 'ada', 'local:', '/srv/corral', 'fork', 'fork', '', '', '', '', NULL, 0, 0, '', '', '', '', '', '', NULL, '', '', 0, '', NULL, '', 'NEW', '', 1795992285916, 1795992285916);
insert into spending_terms values (1, '', '');
insert into spendings values (1, 0, 13, 13, 48, 48);
insert into sqlite_sequence values ('sites', 2);
insert into sqlite_sequence values ('history', 52);
insert into sqlite_sequence values ('clusters', 2);
insert into sqlite_sequence values ('glideins', 4);
insert into sqlite_sequence values ('jobs', 4);
insert into sqlite_sequence values ('packages', 2);
insert into sqlite_sequence values ('mirrors', 2);
insert into sqlite_sequence values ('runs', 2);
insert into sqlite_sequence values ('profiles', 2);
insert into sqlite_sequence values ('plans', 2);
insert into sqlite_sequence values ('plan_revisions', 1);
insert into sqlite_sequence values ('tokens', 2);
insert into sqlite_sequence values ('owners', 1);
insert into sqlite_sequence values ('ensembles', 1);
insert into tokens values (1, 'laptop', 'ada', NULL, 'user', '["read"]', '["local"]', 'sha256:1111111111111111111111111111111111111111111111111111111111111111', 1927857906007, 'VALID', '', 1795992285942, 1795992285942);
insert into tokens values (2, 'child', 'ada', 1, 'user', NULL, NULL, 'sha256:2222222222222222222222222222222222222222222222222222222222222222', NULL, 'VALID', '', 1795992285943, 1795992285943);
insert into usage values (2, 1, 498000, 1000, 10);
