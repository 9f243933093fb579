package storetest

// Ownership of references. The store keeps the objects of many owners, and no row of one owner may refer to an object
// of another, whether by a column, by a label or from within a document. The checks below query the database file
// directly, so that they are not limited to the rows that a transaction sees.

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// ownerOf :: table → expression for a row's owner. Tables that are not listed have rows without an owner or shared by
// all.
var ownerOf = map[string]string{
	"sites": "owner", "clusters": "owner", "glideins": "owner", "runs": "owner", "plans": "owner", "ensembles": "owner",
	"scales": "owner", "profiles": "owner", "tokens": "owner",
	"jobs":           via("sites", "site_id"),
	"probes":         via("sites", "site_id"),
	"nodes":          via("sites", "site_id"),
	"spendings":      via("sites", "site_id"),
	"spending_terms": via("sites", "site_id"),
	"reservations":   via("glideins", "glidein_id"),
	"usage":          via("runs", "run_id"),
	"plan_revisions": via("plans", "plan_id"),
	"pool_tokens":    via("clusters", "cluster_id"),
}

// via returns an expression for the owner of a row without an owner column: the owner of the object named in one of its
// columns.
func via(table, column string) string {
	return "(select o.owner from " + table + " as o where o.id = r." + column + ")"
}

// shared lists the tables whose rows are shared by all owners or belong to corrald.
var shared = []string{"answers", "history", "mirrors", "owners", "packages", "replicas"}

// targets :: name of a column, or of a field that ends with it → table of the object that it refers to.
var targets = map[string]string{
	"site_id": "sites", "cluster_id": "clusters", "glidein_id": "glideins", "follows_id": "glideins", "job_id": "jobs",
	"run_id": "runs", "plan_id": "plans", "ensemble_id": "ensembles", "profile_id": "profiles", "token_id": "tokens",
}

// labels :: label → the table of the object whose id is its value.
var labels = map[string]string{"plan": "plans", "scale": "clusters", "ensemble": "ensembles"}

// unrelated lists columns that end with _id but refer to no object of ours, or to one that may belong to another
// owner: administrators create tokens for others.
var unrelated = []string{"jobs.site_job_id", "tokens.parent_id"}

// CheckOwners reports a test error for each row in the database at path that refers to another owner's object. The
// database may be in use.
func CheckOwners(t testing.TB, path string) {
	t.Helper()
	strangers, err := Strangers(context.WithoutCancel(t.Context()), path) // it may run in a cleanup
	if err != nil {
		t.Errorf("looking for rows that point at what another owner has: %v", err)
	}
	for _, s := range strangers {
		t.Error(s)
	}
}

// Strangers lists the rows in the database at path that refer to another owner's object, one sentence for each. An
// unknown table or column is an error: a change that adds one must declare its owner here.
func Strangers(ctx context.Context, path string) (found []string, err error) {
	path, err = filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite", fmt.Sprintf("file:%s?mode=ro&_pragma=busy_timeout(60000)",
		(&url.URL{Path: path}).EscapedPath()))
	if err != nil {
		return nil, err
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	columns, err := columnsOf(ctx, db)
	if err != nil {
		return nil, err
	}
	var unknown []error
	for table, names := range columns {
		owner, owned := ownerOf[table]
		if !owned {
			if !slices.Contains(shared, table) {
				unknown = append(unknown, fmt.Errorf("table %s: say in ownerOf whose its rows are", table))
			}
			continue
		}
		for _, query := range queries(table, owner, names, &unknown) {
			more, err := texts(ctx, db, query)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", query, err)
			}
			found = append(found, more...)
		}
	}
	slices.Sort(found)
	return found, errors.Join(unknown...)
}

// columnsOf :: table → its columns.
func columnsOf(ctx context.Context, db *sql.DB) (map[string][]string, error) {
	all, err := texts(ctx, db, `select m.name || '.' || c.name from sqlite_master as m, pragma_table_info(m.name) as c
		where m.type = 'table' and m.name not like 'sqlite_%'`)
	columns := map[string][]string{}
	for _, name := range all {
		table, column, _ := strings.Cut(name, ".")
		columns[table] = append(columns[table], column)
	}
	return columns, err
}

func texts(ctx context.Context, db *sql.DB, query string) (all []string, err error) {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return nil, err
		}
		all = append(all, text)
	}
	return all, rows.Err()
}

// queries returns the queries that look for a table's references: by a column, by a label, by a field of a document.
// A reference that is stored in one of these ways under the usual kind of name is found without an entry here, even
// if it is new.
func queries(table, owner string, columns []string, unknown *[]error) (all []string) {
	if table == "scales" { // its id is the cluster's
		all = append(all, query{table: table, owner: owner, where: "id", value: "r.id", to: "clusters"}.text())
	}
	for _, c := range columns {
		to, known := targets[c]
		switch {
		case known:
			all = append(all, query{table: table, owner: owner, where: c, value: "r." + c, to: to}.text())
		case strings.HasSuffix(c, "_id") && !slices.Contains(unrelated, table+"."+c):
			*unknown = append(*unknown, fmt.Errorf("column %s.%s: say in targets what it names", table, c))
		}
		if c == "labels" {
			for label, to := range labels {
				all = append(all, query{table: table, owner: owner, where: "label " + label,
					value: "cast(json_extract(r.labels, '$." + label + "') as integer)", to: to}.text())
			}
			continue
		}
		for field, to := range targets { // a column that is not a document has no fields
			all = append(all, query{table: table, owner: owner, where: c + " " + field, value: "f.value", to: to,
				among: ", json_tree(case when json_valid(r." + c + ") then r." + c + " else 'null' end) as f",
				if_:   "f.key = '" + field + "' and f.type = 'integer'"}.text())
		}
	}
	if slices.Contains(columns, "sites") { // a list of ids, or ids by name
		all = append(all, query{table: table, owner: owner, where: "sites", value: "f.value", to: "sites",
			among: ", json_each(coalesce(r.sites, '[]')) as f", if_: "f.type = 'integer'"}.text())
	}
	return all
}

// A query looks for rows whose value is the id of another owner's object.
type query struct {
	table, owner string // of the rows
	where        string // the place of the value in the row, in words
	value, to    string // the id, and the table that it refers to
	among, if_   string // an additional join and condition
}

func (q query) text() string {
	id := "r.rowid"
	switch q.table {
	case "probes":
		id = "r.tag"
	case "nodes":
		id = "r.name"
	case "spendings":
		id = "r.site_id || ' ' || r.plan_id"
	case "usage":
		id = "r.run_id || ' ' || r.job_id || ' ' || r.hour"
	case "pool_tokens":
		id = "r.id"
	}
	owner := q.owner
	if owner == "owner" {
		owner = "r.owner"
	}
	theirs := strings.ReplaceAll(ownerOf[q.to], "r.", "t.")
	if theirs == "owner" {
		theirs = "t.owner"
	}
	condition := ""
	if q.if_ != "" {
		condition = " and " + q.if_
	}
	return fmt.Sprintf(`select '%[1]s ' || %[2]s || ' of ' || %[3]s || ', %[4]s: %[5]s ' || t.id || ' of ' || %[6]s
		from %[1]s as r%[7]s join %[5]s as t on t.id = %[8]s where %[3]s <> %[6]s%[9]s`,
		q.table, id, owner, q.where, q.to, theirs, q.among, q.value, condition)
}
