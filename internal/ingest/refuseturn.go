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
	"fmt"
	"time"
)

var errTurn = errors.New("another partition reads a batch again, for members who are refused")

// takeTurn takes the token, or ends the flow where others want the memory that its batch
// holds.
func (s *sweeper) takeTurn(ctx context.Context) error {
	return s.awaitTurn(ctx, s.writing, func() error {
		if !s.memory.Wanted() {
			return nil
		}
		s.lostTurn = true
		return fmt.Errorf("%s: %w: %w", s.field, errTurn, errAgain)
	})
}

// awaitLostTurn waits until the token is free, if the last flow ended for it: to read all of a
// batch and find it taken is for nothing.
func (w *worker) awaitLostTurn(ctx context.Context) error {
	if !w.lostTurn {
		return nil
	}
	w.lostTurn = false
	if err := w.awaitTurn(ctx, w.waiting, func() error { return nil }); err != nil {
		return err
	}
	<-w.again
	return nil
}

// awaitTurn waits for the token. look says now and then whether to go on with that.
func (w *worker) awaitTurn(ctx context.Context, blocked func(error), look func() error) error {
	select {
	case w.again <- struct{}{}:
		return nil
	default:
	}
	blocked(errTurn) // the one before may have to wait for Kafka
	w.turns.Add(1)
	defer w.turns.Add(-1)
	now := time.NewTicker(outagePatience) // whoever looks goes to the end of the queue
	defer now.Stop()
	for {
		select {
		case w.again <- struct{}{}:
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
