package app

import (
	"context"
	"errors"
	"testing"

	"github.com/standings/standings/internal/ingest/shards"
	"github.com/standings/standings/internal/ledger"
)

// goesBack is standings that go back as soon as their ledger was read.
type goesBack struct {
	shards.Standings

	bans map[string]bool
}

func (s goesBack) State(context.Context) (ledger.State, error) {
	clear(s.bans)
	return ledger.State{}, nil
}

func TestTheBansAreInLineAfterAWorkerHasReadWhereItContinues(t *testing.T) {
	redis := goesBack{bans: map[string]bool{"u1": true}}
	var s consumedStandings
	s.Standings = redis
	s.before.Align = func(context.Context) error { redis.bans["u1"] = true; return nil }
	if _, err := s.State(t.Context()); err != nil || !redis.bans["u1"] {
		t.Errorf("State returns %v, and the bans are %v", err, redis.bans)
	}
	away := errors.New("not in line")
	s.before.Align = func(context.Context) error { return away }
	if _, err := s.State(t.Context()); !errors.Is(err, away) {
		t.Errorf("State returns %v", err)
	}
}

func TestAShardIsClaimedBeforeItIsBegun(t *testing.T) {
	claimed, other := 0, errors.New("another number of shards")
	s := consumedStandings{has{}, BeforeCounting{Begin: func(context.Context) error { claimed++; return other }}}
	if _, err := s.State(t.Context()); !errors.Is(err, other) || claimed != 1 {
		t.Errorf("State returns %v, after %d claims", err, claimed)
	}
	s.Standings = has{schema: "something"}
	if _, err := s.State(t.Context()); err != nil || claimed != 1 {
		t.Errorf("State returns %v, after %d claims", err, claimed)
	}
}

// has are standings with a schema.
type has struct {
	shards.Standings

	schema string
}

func (h has) State(context.Context) (ledger.State, error) { return ledger.State{Schema: h.schema}, nil }
