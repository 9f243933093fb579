package storetest

// Twins. An owner's views, charges and measurements must not depend on other owners' objects. So a test lets one
// owner live twice: alone, and beside twins. For each object of that owner there are twins' objects with the same name,
// in every state of an object's life. The twins are copies of the owner's objects at the end of the first life.
//
// Ids show the owner of an object: ids of the first life begin with 7, twins' ids with 8, and ids of the second life
// with 9; the second digit identifies the table. So any text shown to a person can be searched for ids.

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/corral-pilot/corral/internal/store"
)

// numbered :: second digit of an id → table.
var numbered = []string{
	"history", "sites", "clusters", "glideins", "jobs", "runs", "plans", "profiles", "tokens", "ensembles",
}

const (
	decade  = 100_000   // ids per table
	life    = 1_000_000 // ids per life
	perTwin = 2_000     // ids that an owner can use in one table
)

// IDs matches the ids of a life: 7, 8 or 9.
func IDs(life int) *regexp.Regexp { return regexp.MustCompile(fmt.Sprintf(`\b%d\d{6}\b`, life)) }

// Noun returns the table of the object with an id.
func Noun(id string) string { return numbered[id[1]-'0'] }

// BeginLife creates a database at path whose ids begin with the digit of a life, 7 or 9.
func BeginLife(ctx context.Context, path string, digit int) error {
	db, err := store.Open(ctx, path)
	if err == nil {
		err = db.Close()
	}
	if err != nil {
		return err
	}
	raw, err := rawDB(path)
	if err != nil {
		return err
	}
	defer raw.Close()
	for i, table := range numbered {
		if _, err := raw.ExecContext(ctx, "insert into sqlite_sequence (name, seq) values (?, ?)", table,
			digit*life+i*decade); err != nil {
			return err
		}
	}
	return nil
}

// Copy copies a database that is in use.
func Copy(ctx context.Context, path, to string) error {
	raw, err := rawDB(path)
	if err != nil {
		return err
	}
	defer raw.Close()
	_, err = raw.ExecContext(ctx, "vacuum into ?", to)
	return err
}

func rawDB(path string) (*sql.DB, error) {
	raw, err := sql.Open("sqlite", "file:"+(&url.URL{Path: path}).EscapedPath()+"?_pragma=busy_timeout(60000)")
	if err == nil {
		raw.SetMaxOpenConns(1)
	}
	return raw, err
}

// ended ends the attempts of a twin's glideins.
const ended = "update jobs set state = 'ENDED', outcome = 'expired', ended_at_ms = updated_at_ms " +
	"where state <> 'ENDED' and glidein_id in (select id from glideins where owner = ?)"

// running makes the attempts of a twin's glideins RUNNING, including ended ones.
const running = "update jobs set state = 'RUNNING', outcome = null, exit_status = null, transient = 0, failure = '', " +
	"summed = 0, ended_at_ms = null, submitted_at_ms = created_at_ms, started_at_ms = created_at_ms " +
	"where glidein_id in (select id from glideins where owner = ?)"

// notBefore is a time in the far future, in milliseconds: a glidein that waits for it is not requested during the
// test.
const notBefore = "4102444800000"

// stages are points in the life of a twin's objects, each given by the statements that bring the objects there; in
// these, ? is the twin's owner.
var stages = [][]string{
	{ // like the owner's objects
	},
	{ // everything is running
		"update sites set state = 'READY' where owner = ?",
		"update clusters set state = 'READY' where owner = ?",
		running,
		"update glideins set state = 'ACTIVE', asked = '' where owner = ?",
		"update runs set state = 'RUNNING', ended_at_ms = null, report = null where owner = ?",
		"update plans set state = 'PROVISIONED', began_at_ms = created_at_ms where owner = ?",
		"update ensembles set state = 'RUNNING', ended_at_ms = null where owner = ?",
		"update tokens set state = 'VALID' where owner = ? and name not in " +
			"(select name from tokens where state = 'VALID')",
	},
	{ // everything is new or ending
		"update sites set state = 'NEW' where owner = ?",
		"delete from jobs where site_id in (select id from sites where owner = ?)",
		"update glideins set state = 'NEW', asked = '' where owner = ?",
		"update runs set state = 'CANCELLING', ended_at_ms = null, report = null where owner = ?",
		"update plans set state = 'READY' where owner = ?",
		"update ensembles set state = 'ENDING', ended_at_ms = null where owner = ?",
	},
	{ // everything is waiting
		"update sites set state = 'STAGING' where owner = ?",
		ended,
		"update glideins set state = 'WAITING', asked = '', not_before_at_ms = " + notBefore + " where owner = ?",
		"update runs set state = 'STALLED', ended_at_ms = updated_at_ms where owner = ?",
		"update plans set state = 'RELEASED' where owner = ?",
	},
	{ // everything is being removed
		"update sites set state = 'EXITING' where owner = ?",
		"update glideins set state = 'REMOVING', asked = 'cancel' where owner = ?",
		"update runs set state = 'CANCELLED', ended_at_ms = updated_at_ms where owner = ?",
	},
	{ // everything has failed
		"update sites set state = 'FAILED', reason = 'no such host' where owner = ?",
		ended, "update glideins set state = 'FAILED', asked = '' where owner = ?",
		"update runs set state = 'FAILED', ended_at_ms = updated_at_ms where owner = ?",
		"update plans set state = 'INFEASIBLE' where owner = ?",
	},
	{ // the site is being removed, the rest has ended
		"update sites set state = 'REMOVING' where owner = ?",
		ended, "update glideins set state = 'FINISHED', asked = '' where owner = ?",
		"update runs set state = 'SUCCEEDED', ended_at_ms = updated_at_ms where owner = ?",
	},
	{ // only records are left
		"update sites set state = 'DELETED' where owner = ?",
		"update scales set report = 'gone' where owner = ?",
		ended, "update glideins set state = 'DELETED', asked = 'cancel' where owner = ?",
		"update runs set state = 'DELETED', ended_at_ms = updated_at_ms where owner = ?",
		"update plans set state = 'DELETED' where owner = ?",
		"update profiles set state = 'DELETED', document = null where owner = ?",
		"update tokens set state = 'REVOKED' where owner = ?",
		"update ensembles set state = 'DELETED', ended_at_ms = updated_at_ms where owner = ? and state = 'ENDED'",
	},
}

// Twins describes the source from which twins are copied, and how the copies differ from it.
type Twins struct {
	Life    string // the database of the first life, which must not change while it is copied
	Owner   string // the owner in the first life
	Contact string // of the twins' sites, in place of the owner's, so that none of their jobs run on this machine
	Dir     string // the folder for their files
}

// Add copies the owner's objects into the database at path, which no process may have open: once for each stage, for
// owners called twin0, twin1 and so on.
//
// The rows are copied unchanged from the tables that ownerOf lists, and not through the store: so twins have every
// kind of row that an owner can have, including those of new tables, and states that the store would leave at once.
func (w Twins) Add(ctx context.Context, path string) error {
	raw, err := rawDB(path)
	if err != nil {
		return err
	}
	defer raw.Close()
	if _, err := raw.ExecContext(ctx, "attach ? as life", w.Life); err != nil {
		return err
	}
	tables, err := columnsOf(ctx, raw)
	if err != nil {
		return err
	}
	if _, err := raw.ExecContext(ctx, "begin; pragma defer_foreign_keys = on"); err != nil {
		return err
	}
	for n, stage := range stages {
		t := twin{Twins: w, ctx: ctx, db: raw, name: "twin" + strconv.Itoa(n), shift: life + n*perTwin}
		for table := range tables {
			if err := t.copy(table); err != nil {
				return fmt.Errorf("copying %s for %s: %w", table, t.name, err)
			}
		}
		for _, statement := range stage {
			if _, err := raw.ExecContext(ctx, statement, t.name); err != nil {
				return fmt.Errorf("%s: %s: %w", t.name, statement, err)
			}
		}
	}
	_, err = raw.ExecContext(ctx, "commit")
	return err
}

// A twin is an owner whose rows are being created.
type twin struct {
	Twins
	ctx   context.Context
	db    *sql.DB // with the first life attached as life
	name  string
	shift int // the number added to the ids of the first life
}

// rows returns a condition for the owner's rows of the first life.
func (t twin) rows(table string) string {
	switch owner, owned := ownerOf[table]; {
	case table == "answers":
		return "actor = '" + t.Owner + "'"
	case table == "history": // the entries about the owner's objects
		var of []string
		for i, noun := range numbered[1:] {
			whose := fmt.Sprintf("(select %s from life.%s as r where r.id = object_id)", lives(ownerOf[noun]), noun)
			of = append(of, fmt.Sprintf("object_id / %d = %d and %s = '%s'", decade, 71+i, whose, t.Owner))
		}
		return strings.Join(of, " or ")
	case owned:
		return lives(owner) + " = '" + t.Owner + "'"
	}
	return "false"
}

// lives turns an expression over tables into one over the tables of the first life.
func lives(expression string) string { return strings.ReplaceAll(expression, "from ", "from life.") }

// copy copies the rows of a table.
func (t twin) copy(table string) error {
	rows, err := t.db.QueryContext(t.ctx, fmt.Sprintf("select * from life.%s as r where %s", table, t.rows(table)))
	if err != nil {
		return err
	}
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	var all [][]any
	for rows.Next() {
		values, at := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			at[i] = &values[i]
		}
		if err := rows.Scan(at...); err != nil {
			return err
		}
		all = append(all, values)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	insert := fmt.Sprintf("insert into main.%s (%s) values (?%s)", table, strings.Join(columns, ", "),
		strings.Repeat(", ?", len(columns)-1))
	for _, values := range all {
		for i, c := range columns {
			values[i] = t.value(table, c, values[i])
		}
		if _, err := t.db.ExecContext(t.ctx, insert, values...); err != nil {
			return fmt.Errorf("%v: %w", values, err)
		}
	}
	return nil
}

var tags = regexp.MustCompile(`corral-(pilot|setup|cleanup|probe)-[a-z2-7]+`)

// value returns the twin's value of a column in which the owner has v. Values are the same except ids, usage and
// charges, which are a thousand times as large, and waits, which are long. Code that mistakes a twin's values for the
// owner's thus becomes visible.
func (t twin) value(table, column string, v any) any {
	switch v := v.(type) {
	case int64:
		switch {
		case v/life == 7 && (column == "id" || strings.HasSuffix(column, "_id")):
			return v + int64(t.shift)
		case table == "usage" && strings.HasSuffix(column, "_ms"), table == "reservations" && column == "amount",
			table == "spendings" && !strings.HasSuffix(column, "_id"):
			return v*1000 + 1 // an owner who is wrongly charged for it notices
		case table == "jobs" && column == "created_at_ms", table == "jobs" && column == "submitted_at_ms":
			return v - 3_600_000 // it has waited for an hour
		}
	case string:
		return t.text(table, column, v)
	}
	return v
}

// text returns the twin's value of a text column: different from the owner's where texts must be unique, and with the
// twin's ids and tags in place of the owner's, as in labels and documents.
func (t twin) text(table, column, v string) string {
	switch {
	case column == "owner" || column == "actor" && v == t.Owner:
		return t.name
	case table == "tokens" && column == "digest":
		return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(t.name+v)))
	case column == "contact":
		return t.Contact
	case column == "root", column == "dir", column == "files":
		return t.Dir + "/" + t.name + "/" + strings.ReplaceAll(v, "/", "-")
	}
	v = tags.ReplaceAllStringFunc(v, func(tag string) string {
		return fmt.Sprintf("%s%x", tag[:strings.LastIndex(tag, "-")+1], sha256.Sum256([]byte(t.name+tag)))[:len(tag)]
	})
	return IDs(7).ReplaceAllStringFunc(v, func(id string) string {
		n, _ := strconv.Atoi(id)
		return strconv.Itoa(n + t.shift)
	})
}
