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

// endpoint is the position at which a reading ends. A replay has one, which is never past the live ledger; a
// consumer has none, and reads without end. All behavior that differs between the two depends on endpoint.
//
// The position is that of one shard, or of several shards. If it is that of several, it isn't in a sweep, since
// different shards are in different sweeps.
type endpoint struct {
	at *ledger.Position
	// lowest is true if the position is the lowest of several shards' endpoints. A shard may already be past
	// it, and then stays where it is.
	lowest bool
}

// beyond is the position of a shard for which nothing is read.
var beyond = ledger.At(math.MaxInt64)

// errEndpointReached reports that a reading is at its endpoint.
var errEndpointReached = errors.New("the replay is at its endpoint")

func endsAt(at ledger.Position) endpoint { return endpoint{at: &at} }

// place returns the position from which a shard is read to the endpoint. It is beyond, so that nothing is read
// for the shard, if the shard is at or past a lowest endpoint, or in a sweep that ends past it.
func (e endpoint) place(at ledger.Position) ledger.Position {
	if e.lowest && (at.From >= e.at.From || at.To > e.at.From) {
		return beyond
	}
	return at
}

// given reports whether there is an endpoint.
func (e endpoint) given() bool { return e.at != nil }

// reached reports whether every shard is at the endpoint.
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

// sweep moves each shard to the beginning of the sweep in which the endpoint lies.
func (e endpoint) sweep(all ledger.Positions) ledger.Positions {
	all = slices.Clone(all)
	for i, at := range all {
		if at != beyond {
			all[i] = ledger.Position{From: e.at.From, To: e.at.To, Rules: e.at.Rules}
		}
	}
	return all
}

// limit returns the offset before which records are read; -1 if there is no endpoint.
func (e endpoint) limit() int64 {
	if e.at == nil {
		return -1
	}
	return e.at.From
}

// before reports whether there are records to read from an offset on.
func (e endpoint) before(offset int64) bool { return e.at == nil || offset < e.at.From }

// below returns the hash at which a sweep ends if the endpoint lies in that sweep; else 0.
func (e endpoint) below(all ledger.Positions) uint64 {
	for _, at := range all {
		if e.at != nil && e.at.Sweeping() && e.at.From == at.From && e.at.To == at.To && e.at.Rules == at.Rules {
			return e.at.Hash
		}
	}
	return 0
}

// shortLog returns the error for a log that ends at an offset in the middle of a sweep. In a replay it reports
// a truncated log, since nothing else checks the log's end; a consumer locates again.
func (e endpoint) shortLog(field string, offset int64, sweep ledger.Reading) error {
	if e.at != nil {
		return start.Truncated(field, *e.at, kafkaconn.Log{End: offset})
	}
	return fmt.Errorf("%s: the log ends at offset %d, in the middle of the sweep of [%d, %d): %w", field, offset, sweep.From, sweep.To, errLocateAgain)
}
