package ingest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/standings/standings/internal/ingest/deadletter"
	"github.com/standings/standings/internal/ingest/health"
	"github.com/standings/standings/internal/ingest/start"
	"github.com/standings/standings/internal/ingest/trail"
	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/kafkaconn/fetch"
	"github.com/standings/standings/internal/retry"
)

// source asks a broker for a partition's records, and waits out what passes there: for a
// reader, and for who reads a batch again. It is its reader's goroutine's.
type source struct {
	*partition
	fetcher   *fetch.Fetcher
	fetchWait time.Duration // that a broker may hold an empty answer
	turn      *turn
	hurried   bool                // others wait for it to end: it waits neither an outage nor a quota out
	waits     func(error)         // is given what it waits for, nil once it goes on
	idle      *retry.Backoff      // between answers that came empty at once
	end       start.LogEnd        // how long the leader has shown the log's end
	lineage   trail.Lineage       // of what was read; unknown if it does not matter
	written   *deadletter.Written // the dead letters of what it reads: of another log, if that ends within
	status    *health.Status
	lag       *health.LagTracker
	stats     *Stats
}

// fetch asks for records until the leader answers. What passes is waited out: errors
// of the broker and of the connection, and a quota that is used up. Errors that won't
// pass end the flow. It is errNoMemory, too, where others want the memory that this
// partition would hold meanwhile.
func (s *source) fetch(ctx context.Context, offset int64) (*fetch.Response, error) {
	wait, began := retry.ForEver.Start(), time.Now()
	for {
		asked := time.Now()
		resp, err := s.fetcher.Fetch(ctx, offset)
		switch {
		case err == nil && resp.Answered():
			s.throttled(resp.Throttled)
			s.written.Ends(resp.HighWatermark, offset)
			return resp, s.answered(ctx, offset, resp, asked)
		case err == nil && resp.Err == nil:
			throttled := resp.Throttled // what is let go takes the response along
			s.throttled(throttled)
			had := s.turn.taken && !s.turn.holding()
			if s.leftAlone(began) {
				return nil, errNoMemory
			}
			if s.hurried && time.Since(began) >= throttleStarves {
				return nil, starved(s.field, began)
			}
			if throttled > 0 {
				if had {
					if err := s.turn.afterThrottle(ctx); err != nil {
						return nil, err
					}
				}
				continue // the next call waits for that
			}
		case err == nil:
			err = fmt.Errorf("fetch %s at offset %d: %w", s.field, offset, resp.Err)
			resp.Release()
		case errors.Is(err, fetch.ErrNoMemory):
			return nil, errNoMemory
		case ctx.Err() != nil:
			return nil, err
		}
		if err != nil {
			if err = haltOfFetch(err, s.field, offset); !passes(err) {
				return nil, err // the start table decides, or haltOf does
			}
			if s.failing(err, began) {
				return nil, errNoMemory
			}
			if s.hurried && time.Since(began) >= outagePatience {
				return nil, err
			}
		}
		if err := wait.Next(ctx); err != nil {
			return nil, err
		}
	}
}

// leftAlone takes note of an answer that says nothing of the partition, after some
// time without another. It reports whether memory goes to others.
func (s *source) leftAlone(since time.Time) bool {
	s.end.Unseen()
	if time.Since(since) >= throttleStarves {
		s.waits(starved(s.field, since))
	} else {
		s.waits(nil)
	}
	return s.turn.yields(since, throttlePatience)
}

// failing takes note of an error that passes, after some time without an answer. It
// reports whether memory goes to others.
func (s *source) failing(err error, since time.Time) bool {
	s.end = start.LogEnd{} // who answers next may be another leader
	s.waits(err)
	s.stats.KafkaTries.Add(1)
	return s.turn.yields(since, outagePatience)
}

// throttled takes note of how long a broker asks to be left alone; mostly it doesn't.
func (s *source) throttled(d time.Duration) {
	s.stats.Throttled.Add(int64(d))
	s.status.Throttled(d)
}

// answered takes note of what a leader's answer says of the log. With an open
// transaction at its end, brokers answer empty at once, thousands of times a second:
// then it waits.
func (s *source) answered(ctx context.Context, offset int64, resp *fetch.Response, asked time.Time) error {
	s.waits(nil)
	s.turn.answered()
	s.status.CaughtUp.Store(len(resp.Records) == 0)
	s.end.Seen(offset, len(resp.Records) == 0)
	s.lag.Ends(resp.LastStable, resp.HighWatermark)
	if err := s.sameLog(ctx, offset, resp); err != nil {
		resp.Release()
		return err
	}
	if len(resp.Records) > 0 || time.Since(asked) >= s.fetchWait/2 {
		s.idle.Reset()
		s.stats.FetchBytes.Add(resp.Bytes())
		return nil
	}
	resp.Release()
	if !s.turn.holding() {
		s.turn.letGo()
	}
	pause, _ := s.idle.Pause()
	return retry.Sleep(ctx, min(pause, max(s.fetchWait, 100*time.Millisecond)))
}

// sameLog halts if the log has lost records that were read: its next records are of a later leader, and by what
// that leader has, the epoch of the records that were read ends before them. In order:
//
//	this worker                       the partition
//	                                  leader A, epoch 7, has records up to offset 500
//	reads to 500: lineage 7@500
//	                                  A dies; B, which has them only up to 450, is elected, epoch 8
//	                                  producers write 450 to 600 to B
//	fetches at 500: records of epoch 8
//	asks B where epoch 7 ends: 450
//
// What a response has is of one moment, so only its first batch can be of another log than what was read before.
func (s *source) sameLog(ctx context.Context, offset int64, resp *fetch.Response) error {
	first, last, next, ok := resp.Epochs()
	was := s.lineage
	if !ok || next <= was.Offset {
		return nil
	}
	if was.Offset > 0 && offset >= was.Offset && first > was.Epoch {
		end, err := kafkaconn.EpochEnd(ctx, s.kafka, s.Topic, s.Number, was.Epoch)
		if err != nil {
			return err
		}
		if err := start.Lost(s.field, was, end, was.Offset); err != nil {
			return err
		}
	}
	s.lineage = trail.Lineage{Offset: next, Epoch: max(last, 0)}
	return nil
}

const (
	// throttleStarves is how long a partition may be throttled without any other
	// answer until it counts as waiting.
	throttleStarves = time.Minute
)

// starved is what a partition waits for that has got nothing but throttled answers
// for a while.
func starved(field string, since time.Time) error {
	return &health.Waiting{Reason: health.WaitsThrottled, Err: fmt.Errorf("%s has got nothing since %s: a quota of Kafka's holds back every answer",
		field, since.UTC().Format(time.RFC3339)), Remedy: health.ThrottleRemedy}
}
