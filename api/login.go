package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// LoginStep begins or continues a login. It returns when there is another question or the login is done. It sends no
// idempotency key, because answers must not be stored.
func (c *Client) LoginStep(ctx context.Context, n NewLogin) (Login, error) {
	body, err := json.Marshal(n)
	if err != nil {
		return Login{}, fmt.Errorf("encoding the request: %w", err)
	}
	return decode[Login](c.do(ctx, call{method: http.MethodPost, path: "/v1/logins", body: body}))
}

// Login logs in at the site or contact named in where, with answers from ask. From then on corrald keeps the connection
// open. An error from ask ends the login.
func (c *Client) Login(ctx context.Context, where NewLogin,
	ask func(context.Context, LoginQuestion) ([]string, error)) error {
	step, err := c.LoginStep(ctx, where)
	for err == nil && !step.Done {
		if step.Question == nil {
			return nil // it was cancelled
		}
		answers, askErr := ask(ctx, *step.Question)
		if askErr != nil {
			c.cancelLogin(ctx, step.Session)
			return askErr
		}
		step, err = c.LoginStep(ctx, NewLogin{Session: step.Session, Answers: answers})
	}
	return err
}

// cancelLogin notifies corrald that there will be no answer; otherwise corrald would wait several minutes for it.
func (c *Client) cancelLogin(ctx context.Context, session string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	_, _ = c.LoginStep(ctx, NewLogin{Session: session, Cancel: true})
}
