package replay

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/standings/standings/internal/ingest/locate"
	"github.com/standings/standings/internal/ingest/start"
	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/ledger"
)

// Endpoint is the position at which a reading ends. A replay has one, which is never past the live ledger; a
// consumer has none, and reads without end. All behavior that differs between the two depends on Endpoint.
//
// The position is that of one shard, or of several shards. If it is that of several, it isn't in a sweep, since
// different shards are in different sweeps.
type Endpoint struct {
	At *ledger.Position
	// Lowest is true if the position is the lowest of several shards' endpoints. A shard may already be past
	// it, and then stays where it is.
	Lowest bool
}

// Beyond is the position of a shard for which nothing is read.
var Beyond = ledger.At(math.MaxInt64)

// ErrReached reports that a reading is at its endpoint.
var ErrReached = errors.New("the replay is at its endpoint")

func endsAt(at ledger.Position) Endpoint { return Endpoint{At: &at} }

// Place returns the position from which a shard is read to the endpoint. It is beyond, so that nothing is read
// for the shard, if the shard is at or past a lowest endpoint, or in a sweep that ends past it.
func (e Endpoint) Place(at ledger.Position) ledger.Position {
	if e.Lowest && (at.From >= e.At.From || at.To > e.At.From) {
		return Beyond
	}
	return at
}

// Given reports whether there is an endpoint.
func (e Endpoint) Given() bool { return e.At != nil }

// Reached reports whether every shard is at the endpoint.
func (e Endpoint) Reached(all ledger.Positions) bool {
	if e.At == nil {
		return false
	}
	for _, at := range all {
		if at != *e.At && at != Beyond {
			return false
		}
	}
	return true
}

// Sweep moves each shard to the beginning of the sweep in which the endpoint lies.
func (e Endpoint) Sweep(all ledger.Positions) ledger.Positions {
	all = slices.Clone(all)
	for i, at := range all {
		if at != Beyond {
			all[i] = ledger.Position{From: e.At.From, To: e.At.To, Rules: e.At.Rules}
		}
	}
	return all
}

// Limit returns the offset before which records are read; -1 if there is no endpoint.
func (e Endpoint) Limit() int64 {
	if e.At == nil {
		return -1
	}
	return e.At.From
}

// Before reports whether there are records to read from an offset on.
func (e Endpoint) Before(offset int64) bool { return e.At == nil || offset < e.At.From }

// Below returns the hash at which a sweep ends if the endpoint lies in that sweep; else 0.
func (e Endpoint) Below(all ledger.Positions) uint64 {
	for _, at := range all {
		if e.At != nil && e.At.Sweeping() && e.At.From == at.From && e.At.To == at.To && e.At.Rules == at.Rules {
			return e.At.Hash
		}
	}
	return 0
}

// ShortLog returns the error for a log that ends at an offset in the middle of a sweep. In a replay it reports
// a truncated log, since nothing else checks the log's end; a consumer locates again.
func (e Endpoint) ShortLog(field string, offset int64, sweep ledger.Reading) error {
	if e.At != nil {
		return start.Truncated(field, *e.At, kafkaconn.Log{End: offset})
	}
	return fmt.Errorf("%s: the log ends at offset %d, in the middle of the sweep of [%d, %d): %w", field, offset, sweep.From, sweep.To, locate.ErrAgain)
}

// PositionOf parses the position of a field in the shadow's ledger. It returns ErrShadowLost if there is none.
func PositionOf(field, text string) (ledger.Position, error) {
	if text == "" {
		return ledger.Position{}, fmt.Errorf("%s: %w", field, ErrShadowLost)
	}
	at, err := ledger.Parse(text)
	if err != nil {
		return ledger.Position{}, fmt.Errorf("the shadow's ledger of %s: %w", field, err)
	}
	return at, nil
}

// Leads reports whether a sweep at one position can reach another.
func Leads(from, to ledger.Position) bool {
	switch {
	case from == to:
		return true
	case from.Sweeping() && from.From == to.From && from.To == to.To && from.Rules == to.Rules:
		return to.Hash > from.Hash
	case from.Sweeping():
		return to.From >= from.To
	}
	return to.From > from.From || to.From == from.From && to.Sweeping()
}

var (
	// ErrWentBack reports that the replay is past its endpoint, because the live ledger rolled back. What was
	// added can't be removed.
	ErrWentBack = errors.New("the live ledger went back")
	// ErrLogMoved reports that records were deleted from the log before they were read.
	ErrLogMoved = errors.New("the log begins later than before")
	// ErrShadowLost reports that the replay's own standings are gone.
	ErrShadowLost = errors.New("the shadow has nothing of it any more: its lease ran out, or Redis has lost it")
)

// UnreachableError reports that a shard of the replay isn't at its endpoint after everything was read, or can't
// ever be: the log's records don't lead to it.
type UnreachableError struct {
	Field     string
	Shard     int
	Of        ledger.Shards
	Until, At ledger.Position // the endpoint, and the replay's position
}

func (e *UnreachableError) Error() string {
	why := "its log has been read, and the records don't add up to that"
	if !e.Of.CanBeAt(e.Shard, e.Until) {
		why = fmt.Sprintf("no sweep of the shard can be there, as its hashes are from %016x to %016x", e.Of.From(e.Shard), e.Of.From(e.Shard+1)-1)
	}
	return fmt.Sprintf("%s is at %v in the live ledger, and the rebuild at %v: %s", e.Field, e.Until, e.At, why)
}
