package ingest

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/standings/standings/internal/ingest/start"
	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/ledger"
)

// endpoint is where a reading ends. A replay's is a position, which is never past the live
// ledger; a consumer has none, and goes on for ever. All that depends on which of the two a
// reading is, is asked of this.
//
// The position is that of one shard, or of several: then it is in no sweep, as those of
// different shards are in sweeps of their own.
type endpoint struct {
	at *ledger.Position
	// lowest: it is the lowest of several shards' endpoints. A shard that is past it, which may
	// be right for that one, stays where it is.
	lowest bool
}

// beyond is where a shard stands that nothing is read for.
var beyond = ledger.At(math.MaxInt64)

// errEndpointReached says that a reading is at its endpoint.
var errEndpointReached = errors.New("the replay is at its endpoint")

func endsAt(at ledger.Position) endpoint { return endpoint{at: &at} }

// place is where a shard stands for what is read to the endpoint: beyond all of it, if it
// can't be brought there and needn't.
func (e endpoint) place(at ledger.Position) ledger.Position {
	if e.lowest && (at.From >= e.at.From || at.To > e.at.From) {
		return beyond
	}
	return at
}

// given reports whether there is one.
func (e endpoint) given() bool { return e.at != nil }

// reached reports whether every shard is there.
func (e endpoint) reached(all ledger.Positions) bool {
	if e.at == nil {
		return false
	}
	for _, at := range all {
		if at != *e.at && at != beyond {
			return false
		}
	}
	return true
}

// sweep has the shard stand at the beginning of the sweep that the endpoint lies in.
func (e endpoint) sweep(all ledger.Positions) ledger.Positions {
	all = slices.Clone(all)
	for i, at := range all {
		if at != beyond {
			all[i] = ledger.Position{From: e.at.From, To: e.at.To, Rules: e.at.Rules}
		}
	}
	return all
}

// limit is the offset before which records are read, negative without one.
func (e endpoint) limit() int64 {
	if e.at == nil {
		return -1
	}
	return e.at.From
}

// before reports whether there are records to read from an offset on.
func (e endpoint) before(offset int64) bool { return e.at == nil || offset < e.at.From }

// below is the hash that a sweep ends at, where the endpoint lies in that one; else 0.
func (e endpoint) below(all ledger.Positions) uint64 {
	for _, at := range all {
		if e.at != nil && e.at.Sweeping() && e.at.From == at.From && e.at.To == at.To && e.at.Rules == at.Rules {
			return e.at.Hash
		}
	}
	return 0
}

// shortLog is what a log's end at an offset results in, in the middle of a sweep. Of a
// replay nobody else looks at what the log has; a consumer looks at its ledger again.
func (e endpoint) shortLog(field string, offset int64, sweep ledger.Reading) error {
	if e.at != nil {
		return start.Truncated(field, *e.at, kafkaconn.Log{End: offset})
	}
	return fmt.Errorf("%s: the log ends at offset %d, in the middle of the sweep of [%d, %d): %w", field, offset, sweep.From, sweep.To, errLocateAgain)
}
