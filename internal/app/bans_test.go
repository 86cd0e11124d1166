package app

import (
	"context"
	"errors"
	"testing"

	"github.com/standings/standings/internal/ingest"
	"github.com/standings/standings/internal/ledger"
)

// goesBack is standings that go back as soon as their ledger was read.
type goesBack struct {
	ingest.Standings

	bans map[string]bool
}

func (s goesBack) State(context.Context) (ledger.State, error) {
	clear(s.bans)
	return ledger.State{}, nil
}

func TestTheBansAreInLineAfterAWorkerHasReadWhereItContinues(t *testing.T) {
	redis := goesBack{bans: map[string]bool{"u1": true}}
	s := alignedStandings{redis, func(context.Context) error { redis.bans["u1"] = true; return nil }}
	if _, err := s.State(t.Context()); err != nil || !redis.bans["u1"] {
		t.Errorf("State returns %v, and the bans are %v", err, redis.bans)
	}
	away := errors.New("not in line")
	s.align = func(context.Context) error { return away }
	if _, err := s.State(t.Context()); !errors.Is(err, away) {
		t.Errorf("State returns %v", err)
	}
}
