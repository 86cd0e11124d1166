package ingest

// This file has the token for reading a batch again because of refused members. If its holder waits for Kafka
// while others want memory, these events follow each other:
//
//	sweeper, with a batch       worker, with nothing        memory
//	waits for the token                                     wanted
//	ends the flow               releases everything         goes to the waiting partitions
//	                            waits for the token,
//	                            returns it
//	                            flow starts at the ledger

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

var errTurn = errors.New("another partition reads a batch again, for members who are refused")

// rereads holds the token with which one partition of a process at a time reads a batch again.
type rereads struct {
	token   chan struct{}
	waiting atomic.Int32 // number of partitions that wait for the token
}

func newRereads() *rereads { return &rereads{token: make(chan struct{}, 1)} }

// wanted reports whether another partition waits for the token.
func (t *rereads) wanted() bool { return t.waiting.Load() > 0 }

// end releases the token.
func (t *rereads) end() { <-t.token }

// await waits for the token. It calls look at intervals, and returns its error.
func (t *rereads) await(ctx context.Context, waits func(error), look func() error) error {
	select {
	case t.token <- struct{}{}:
		return nil
	default:
	}
	waits(errTurn) // the holder may have to wait for Kafka
	t.waiting.Add(1)
	defer t.waiting.Add(-1)
	now := time.NewTicker(outagePatience) // a waiter that wakes up to look moves to the end of the queue
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
