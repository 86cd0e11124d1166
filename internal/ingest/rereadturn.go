package ingest

// Whose turn it is to read a batch again, for members who are refused: a token. In order of
// events, where the one who has it waits for Kafka and others want memory:
//
//	sweeper, with a batch       worker, with nothing        memory
//	waits for the token                                     wanted
//	ends the flow               all is let go               goes to who wants it
//	                            waits for the token,
//	                            gives it back
//	                            flow begins at the ledger

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

var errTurn = errors.New("another partition reads a batch again, for members who are refused")

// rereads are a process's turns at reading a batch again: one at a time.
type rereads struct {
	token   chan struct{}
	waiting atomic.Int32 // how many wait for it
}

func newRereads() *rereads { return &rereads{token: make(chan struct{}, 1)} }

// wanted reports whether anybody waits for a turn.
func (t *rereads) wanted() bool { return t.waiting.Load() > 0 }

// end lets the next one have the turn.
func (t *rereads) end() { <-t.token }

// await waits for a turn. look says now and then whether to go on with that.
func (t *rereads) await(ctx context.Context, waits func(error), look func() error) error {
	select {
	case t.token <- struct{}{}:
		return nil
	default:
	}
	waits(errTurn) // the one before may have to wait for Kafka
	t.waiting.Add(1)
	defer t.waiting.Add(-1)
	now := time.NewTicker(outagePatience) // whoever looks goes to the end of the queue
	defer now.Stop()
	for {
		select {
		case t.token <- struct{}{}:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-now.C:
			if err := look(); err != nil {
				return err
			}
		}
	}
}
