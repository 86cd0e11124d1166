package clients

import (
	"context"
	"errors"
	"testing"
)

// A worker learns where it goes on only once the bans are in line: else it would apply to a Redis
// that was wiped what shows who is banned.
func TestAWorkerReadsWhereItGoesOnOnlyOnceTheBansAreInLine(t *testing.T) {
	away := errors.New("not in line")
	s := alignedStandings{redisStandings{}, func(context.Context) error { return away }}
	if _, err := s.State(t.Context()); !errors.Is(err, away) {
		t.Errorf("State answers %v", err)
	}
}
