package server

import (
	"context"
	"crypto/rand"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/internal/store"
)

// loginLife is how long a login may take, with all answers that a person gives.
const loginLife = 5 * time.Minute

// logins are those that were begun, by id. One that is over stays for a while, for the repetition of a request.
type logins struct {
	mu      sync.Mutex // guards begun
	begun   map[string]*login
	running sync.WaitGroup
}

// A login is one that corrald makes with a person's answers, which are in no log and no record. Its session is named
// ID.N in the N-th question, so that the repetition of an answer answers nothing else.
type login struct {
	id      string
	site    corral.Site
	began   time.Time
	cancel  context.CancelFunc
	answers chan []string // to the question that waits; never blocks

	mu       sync.Mutex // guards following
	asked    int
	question *gridsite.Question // that waits for its answers; nil: none
	over     bool
	err      error         // once over
	changed  chan struct{} // closed when asked or over changes next
}

// login answers with the first question that a login raises, takes its answers, and so on until it is over. It goes
// past the records of answered requests: a digest of a passphrase is nothing to keep.
func (s *Server) login(c echo.Context) error {
	var in api.NewLogin
	if _, err := decodeBody(c, &in); err != nil {
		return err
	}
	ctx := c.Request().Context()
	l, n, err := s.loginOf(ctx, in)
	if err != nil {
		return err
	}
	if in.Cancel {
		l.cancel()
		return c.JSON(http.StatusOK, api.Login{})
	}
	if n > 0 {
		if err := l.answer(n, in.Answers); err != nil {
			return err
		}
	}
	step, err := l.next(ctx, n)
	if err == nil && step.Done && l.site.ID != 0 {
		err = s.db.Write(ctx, actor(c), func(tx *store.Tx) error {
			return tx.Log(corral.ObjectSite, int64(l.site.ID), "login", "")
		})
	}
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, step)
}

// loginOf begins a login, or finds the one that the request goes on with and the number of the question it answers.
func (s *Server) loginOf(ctx context.Context, in api.NewLogin) (l *login, n int, err error) {
	if in.Session != "" {
		if in.Site != "" || in.Contact != "" || in.AcceptHostKey {
			return nil, 0, corral.ErrorAt(corral.Invalid, "session", "goes without site, contact and accept_host_key")
		}
		return s.logins.find(in.Session)
	}
	if in.Cancel || in.Answers != nil {
		return nil, 0, corral.ErrorAt(corral.Invalid, "session", "missing: which login is that for?")
	}
	site, err := s.whereToLogIn(ctx, in)
	if err != nil {
		return nil, 0, err
	}
	return s.beginLogin(site, in.AcceptHostKey), 0, nil
}

// whereToLogIn finds the site, or makes one of a contact.
func (s *Server) whereToLogIn(ctx context.Context, in api.NewLogin) (site corral.Site, err error) {
	if (in.Site == "") == (in.Contact == "") {
		return site, corral.ErrorAt(corral.Invalid, "site", "want either site or contact")
	}
	site.Contact = in.Contact
	if in.Site != "" {
		err = s.db.View(ctx, func(tx *store.Tx) (err error) {
			site, err = siteNamed(tx, "site", in.Site)
			return err
		})
		if err != nil {
			return site, err
		}
	}
	contact, err := gridsite.ParseContact(site.Contact)
	switch {
	case err != nil:
		return site, err
	case contact.Transport != "ssh":
		return site, corral.ErrorAt(corral.Unsatisfiable, "site", "%s needs no login", site.Contact)
	case site.State == corral.SiteDeleted:
		return site, corral.ErrorAt(corral.Conflict, "site", "%s is %s", site.Name, site.State)
	}
	site.Contact = contact.String()
	return site, nil
}

// beginLogin begins a login that ends with the server, if nothing ends it sooner.
func (s *Server) beginLogin(site corral.Site, acceptHostKey bool) *login {
	ctx, cancel := context.WithTimeout(context.Background(), loginLife)
	l := &login{
		id: rand.Text(), site: site, began: time.Now(), cancel: cancel,
		answers: make(chan []string, 1), changed: make(chan struct{}),
	}
	s.logins.keep(l)
	s.logins.running.Go(func() {
		defer cancel()
		go func() {
			select {
			case <-s.stopping:
				cancel()
			case <-ctx.Done():
			}
		}()
		err := s.cfg.Login(ctx, site, l.ask, acceptHostKey)
		if err != nil && ctx.Err() != nil {
			err = corral.ErrorAt(corral.Forbidden, "login", "%s: the login was given up, or took longer than %s", site.Contact, loginLife)
		}
		l.end(entry(err))
	})
	return l
}

// keep adds a login and forgets those that are long over.
func (ls *logins) keep(l *login) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for id, old := range ls.begun {
		if time.Since(old.began) > 2*loginLife {
			delete(ls.begun, id)
		}
	}
	if ls.begun == nil {
		ls.begun = map[string]*login{}
	}
	ls.begun[l.id] = l
}

// find returns the login that a session names, and the number of the question.
func (ls *logins) find(session string) (*login, int, error) {
	id, number, _ := strings.Cut(session, ".")
	n, err := strconv.Atoi(number)
	ls.mu.Lock()
	l := ls.begun[id]
	ls.mu.Unlock()
	if l == nil || err != nil || n < 1 {
		return nil, 0, corral.ErrorAt(corral.NotFound, "session", "there is no such login: it is over")
	}
	return l, n, nil
}

// ask poses a question and waits for its answers.
func (l *login) ask(ctx context.Context, q gridsite.Question) ([]string, error) {
	l.mu.Lock()
	l.asked++
	l.question = &q
	l.tell()
	l.mu.Unlock()
	select {
	case answers := <-l.answers:
		return answers, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// end notes that the login is over.
func (l *login) end(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.question, l.over, l.err = nil, true, err
	l.tell()
}

// tell wakes who waits for a change; l.mu is held.
func (l *login) tell() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// answer hands the answers to question n on, once.
func (l *login) answer(n int, answers []string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case n > l.asked:
		return corral.ErrorAt(corral.NotFound, "session", "there is no such question")
	case n < l.asked || l.question == nil: // it was answered; what came of it is waited for
		return nil
	case len(answers) != len(l.question.Prompts):
		return corral.ErrorAt(corral.Invalid, "answers", "want %d, got %d", len(l.question.Prompts), len(answers))
	}
	l.question = nil
	l.answers <- answers
	return nil
}

// next waits for what follows question n. Who goes away meanwhile ends the login.
func (l *login) next(ctx context.Context, n int) (api.Login, error) {
	for {
		l.mu.Lock()
		asked, question, over, err, changed := l.asked, l.question, l.over, l.err, l.changed
		l.mu.Unlock()
		switch {
		case over && err != nil:
			return api.Login{}, err
		case over:
			return api.Login{Done: true}, nil
		case asked > n && question != nil:
			return api.Login{Session: l.id + "." + strconv.Itoa(asked), Question: asOurs(question)}, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			l.cancel()
			return api.Login{}, ctx.Err()
		}
	}
}

func asOurs(q *gridsite.Question) *api.LoginQuestion {
	ours := &api.LoginQuestion{Name: q.Name, Instruction: q.Instruction, Prompts: []api.LoginPrompt{}}
	for _, p := range q.Prompts {
		ours.Prompts = append(ours.Prompts, api.LoginPrompt(p))
	}
	return ours
}
