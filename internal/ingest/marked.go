package ingest

import (
	"context"
	"errors"
	"time"

	"github.com/standings/standings/internal/ledger"
)

// marked are standings whose errors say that they are the standings': so that a
// wait is told from one for Kafka.
type marked struct{ Standings }

type standingsError struct{ error }

func (e standingsError) Unwrap() error { return e.error }

func mark(err error) error {
	if err == nil {
		return nil
	}
	return standingsError{err}
}

// ofStandings reports whether an error came from the standings.
func ofStandings(err error) bool {
	_, ok := errors.AsType[standingsError](err)
	return ok
}

func (m marked) Apply(ctx context.Context, p *ledger.Piece) (ledger.Answer, time.Duration, error) {
	a, took, err := m.Standings.Apply(ctx, p)
	return a, took, mark(err)
}

func (m marked) Check(ctx context.Context, p *ledger.Piece) (ledger.Answer, error) {
	a, err := m.Standings.Check(ctx, p)
	return a, mark(err)
}

func (m marked) Position(ctx context.Context, topic string, partition int) (string, error) {
	text, err := m.Standings.Position(ctx, topic, partition)
	return text, mark(err)
}

func (m marked) State(ctx context.Context) (ledger.State, error) {
	s, err := m.Standings.State(ctx)
	return s, mark(err)
}

func (m marked) Begin(ctx context.Context, all []ledger.Beginning) (ledger.Begun, error) {
	b, err := m.Standings.Begin(ctx, all)
	return b, mark(err)
}
