package rig

import (
	"context"
	"errors"
	"time"

	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/kit/xdg"
	"github.com/corral-pilot/corral/internal/service/personal"
)

// patience is how long a corrald may take to remove all its objects, and to end.
const patience = 2 * time.Minute

// A Service is a private corrald with all its files below one directory.
type Service struct {
	Corrald personal.Corrald
	Client  *api.Client // nil until the service is started
}

// NewService returns a corrald that has not been started; root's runs as runAs, unless that is empty.
func NewService(dir, runAs string) Service {
	return Service{Corrald: personal.Corrald{Layout: xdg.Below(dir), RunAs: runAs}}
}

// Start starts the service. The caller must end it, even if there is an error.
func (s *Service) Start(ctx context.Context) error {
	if _, err := s.Corrald.Start(ctx); err != nil {
		return err
	}
	var err error
	s.Client, err = s.Corrald.Client()
	return err
}

// End removes the corrald's objects, and ends it.
func (s *Service) End() (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if s.Client != nil && s.Corrald.Answers(ctx) {
		_, err = personal.TakeDown(ctx, s.Client, personal.Down{Force: true})
		s.Client.Close()
	}
	return errors.Join(err, s.Corrald.Stop(ctx))
}
