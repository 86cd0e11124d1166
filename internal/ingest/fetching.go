package ingest

// How a reader asks a broker, and what it waits out there.

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/standings/standings/internal/ingest/fetch"
	"github.com/standings/standings/internal/ledger"
)

// fetch asks for records until the leader answers. What passes is waited out: errors
// of the broker and of the connection, and a quota that is used up. Errors that won't
// pass end the flow. It is errNoMemory, too, where others want the memory that this
// partition would hold meanwhile.
func (r *reader) fetch(ctx context.Context, offset int64) (*fetch.Response, error) {
	wait, began := newWait(), time.Now()
	for {
		asked := time.Now()
		resp, err := r.fetcher.Fetch(ctx, offset)
		switch {
		case err == nil && resp.Answered():
			r.throttled(resp.Throttled)
			r.done.ends(resp.HighWatermark, offset)
			return resp, r.answered(ctx, offset, resp, asked)
		case err == nil && resp.Err == nil:
			r.throttled(resp.Throttled)
			turn := r.hasTurn && !r.holds()
			if r.leftAlone(began) {
				return nil, errNoMemory
			}
			if r.token && time.Since(began) >= throttleStarves {
				return nil, starved(r.field, began)
			}
			if resp.Throttled > 0 {
				if turn {
					if err := r.turnAgain(ctx); err != nil {
						return nil, err
					}
				}
				continue // the next call waits for that
			}
		case err == nil:
			err = fmt.Errorf("fetch %s at offset %d: %w", r.field, offset, resp.Err)
			resp.Release()
		case errors.Is(err, fetch.ErrNoMemory):
			return nil, errNoMemory
		case ctx.Err() != nil:
			return nil, err
		}
		if err != nil {
			if err = unfetchable(err, r.field, offset); !passes(err) {
				return nil, err // the start table decides, or judge does
			}
			if r.failing(err, began) {
				return nil, errNoMemory
			}
			if r.token && time.Since(began) >= outagePatience {
				return nil, err
			}
		}
		if err := wait.next(ctx); err != nil {
			return nil, err
		}
	}
}

// leftAlone takes note of an answer that says nothing of the partition, after some
// time without another. It reports whether memory goes to others.
func (r *reader) leftAlone(since time.Time) bool {
	r.end.unseen()
	if time.Since(since) >= throttleStarves {
		r.blocked(starved(r.field, since))
	} else {
		r.blocked(nil)
	}
	return r.yields(since, throttlePatience)
}

// failing takes note of an error that passes, after some time without an answer. It
// reports whether memory goes to others.
func (r *reader) failing(err error, since time.Time) bool {
	r.end = end{} // who answers next may be another leader
	r.blocked(err)
	r.Stats.KafkaTries.Add(1)
	return r.yields(since, outagePatience)
}

// passes reports whether an error of a fetch is waited out where it was met.
func passes(err error) bool {
	_, halt := errors.AsType[*Halt](err)
	return !halt && !errors.Is(err, kafka.OffsetOutOfRange) && Meaning(err) == ledger.Retry
}

// answered takes note of what a leader's answer says of the log. With an open
// transaction at its end, brokers answer empty at once, thousands of times a second:
// then it waits.
func (r *reader) answered(ctx context.Context, offset int64, resp *fetch.Response, asked time.Time) error {
	r.blocked(nil)
	r.caughtUp.Store(len(resp.Records) == 0)
	r.end.seen(offset, len(resp.Records) == 0)
	r.lag.ends(resp.LastStable)
	if len(resp.Records) > 0 || time.Since(asked) >= r.FetchWait/2 {
		r.idle.Reset()
		r.Stats.FetchBytes.Add(int64(len(resp.Records)))
		return nil
	}
	resp.Release()
	if !r.holds() {
		r.letGo()
	}
	return sleep(ctx, min(r.idle.NextBackOff(), max(r.FetchWait, 100*time.Millisecond)))
}

// unfetchable is what an error of a fetch comes to: a halt where trying again can't help.
func unfetchable(err error, field string, offset int64) error {
	switch {
	case errors.Is(err, fetch.ErrTooLarge):
		return &Halt{HaltTooLarge, fmt.Sprintf("the record batch of %s at offset %d: %v", field, offset, err),
			"raise fold_memory to sixteen times that size or more"}
	case errors.Is(err, fetch.ErrVersion), errors.Is(err, fetch.ErrMalformed):
		return &Halt{HaltKafka, err.Error(), "the broker has to be Kafka 2.3 or later"}
	}
	return err
}
