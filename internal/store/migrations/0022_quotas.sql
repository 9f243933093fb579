-- What is counted of an owner whenever one more is asked for. The queries name the states in these very words. Sites,
-- clusters, profiles and tokens are counted by the indexes of their names.
create index glideins_open on glideins (owner, state) where state in ('NEW', 'WAITING', 'ACTIVE', 'REMOVING');
create index runs_kept on runs (owner, state) where state <> 'DELETED';
create index plans_kept on plans (owner, state) where state <> 'DELETED';
create index ensembles_kept on ensembles (owner, state) where state <> 'DELETED';
