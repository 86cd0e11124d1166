// Package source fetches the records of one partition. It waits out transient errors and quotas, compares the log with
// the one that was read before, and holds a reader's turn at the memory budget. Permanent errors become halts.
package source

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/standings/standings/internal/ingest/counts"
	"github.com/standings/standings/internal/ingest/deadletter"
	"github.com/standings/standings/internal/ingest/health"
	"github.com/standings/standings/internal/ingest/start"
	"github.com/standings/standings/internal/ingest/trail"
	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/kafkaconn/fetch"
	"github.com/standings/standings/internal/retry"
)

// Source fetches a partition's records and waits out transient errors, for a reader or a rereading. Only its
// reader's goroutine uses it.
type Source struct {
	*Handle
	Fetcher   *fetch.Fetcher
	FetchWait time.Duration // how long a broker may delay an empty answer
	Turn      *Turn
	Hurried   bool                // others wait for it to end: it gives up on long outages and quotas
	Waits     func(error)         // receives what it waits for; nil once it continues
	Idle      *retry.Backoff      // between empty answers that come at once
	End       start.LogEnd        // how long the leader has reported the log's end
	Lineage   trail.Lineage       // of what was read; unknown if it does not matter
	Written   *deadletter.Written // dead letters of the records that it reads; void if the log ends before them
	Status    *health.Status
	Lag       *health.LagTracker
	Stats     *counts.Stats
}

// Fetch requests records until the leader answers. It waits out transient errors: of the broker, of the
// connection, and an exhausted quota. Permanent errors end the flow. It returns ErrNoMemory if others want the
// memory that this partition would hold while it waits.
func (s *Source) Fetch(ctx context.Context, offset int64) (*fetch.Response, error) {
	wait, began := retry.ForEver.Start(), time.Now()
	for {
		asked := time.Now()
		resp, err := s.Fetcher.Fetch(ctx, offset)
		switch {
		case err == nil && resp.Answered():
			s.throttled(resp.Throttled)
			s.Written.Ends(resp.HighWatermark, offset)
			return resp, s.answered(ctx, offset, resp, asked)
		case err == nil && resp.Err == nil:
			throttled := resp.Throttled // releasing memory also releases the response
			s.throttled(throttled)
			had := s.Turn.Taken && !s.Turn.holding()
			if s.leftAlone(began) {
				return nil, ErrNoMemory
			}
			if s.Hurried && time.Since(began) >= throttleStarves {
				return nil, starved(s.Field, began)
			}
			if throttled > 0 {
				if had {
					if err := s.Turn.afterThrottle(ctx); err != nil {
						return nil, err
					}
				}
				continue // the next call waits for that time
			}
		case err == nil:
			err = fmt.Errorf("fetch %s at offset %d: %w", s.Field, offset, resp.Err)
			resp.Release()
		case errors.Is(err, fetch.ErrNoMemory):
			return nil, ErrNoMemory
		case ctx.Err() != nil:
			return nil, err
		}
		if err != nil {
			if err = HaltOfFetch(err, s.Field, offset); !Passes(err) {
				return nil, err // the start table decides, or HaltOf does
			}
			if s.failing(err, began) {
				return nil, ErrNoMemory
			}
			if s.Hurried && time.Since(began) >= OutagePatience {
				return nil, err
			}
		}
		if err := wait.Next(ctx); err != nil {
			return nil, err
		}
	}
}

// leftAlone handles an answer without data of the partition, after no other answer since a time. It reports
// whether the memory goes to other partitions.
func (s *Source) leftAlone(since time.Time) bool {
	s.End.Unseen()
	if time.Since(since) >= throttleStarves {
		s.Waits(starved(s.Field, since))
	} else {
		s.Waits(nil)
	}
	return s.Turn.yields(since, throttlePatience)
}

// failing handles a transient error, after no answer since a time. It reports whether the memory goes to other
// partitions.
func (s *Source) failing(err error, since time.Time) bool {
	s.End = start.LogEnd{} // the next answer may come from another leader
	s.Waits(err)
	s.Stats.KafkaTries.Add(1)
	return s.Turn.yields(since, OutagePatience)
}

// throttled records for how long a broker throttles the client; 0 in most answers.
func (s *Source) throttled(d time.Duration) {
	s.Stats.Throttled.Add(int64(d))
	s.Status.Throttled(d)
}

// answered handles a leader's answer. If the log ends with an open transaction, brokers return empty answers at
// once, thousands of times a second: answered then waits.
func (s *Source) answered(ctx context.Context, offset int64, resp *fetch.Response, asked time.Time) error {
	s.Waits(nil)
	s.Turn.answered(len(resp.Records) == 0)
	s.Status.CaughtUp.Store(len(resp.Records) == 0)
	s.End.Seen(offset, len(resp.Records) == 0)
	s.Lag.Ends(resp.LastStable, resp.HighWatermark)
	if err := s.sameLog(ctx, offset, resp); err != nil {
		resp.Release()
		return err
	}
	if len(resp.Records) > 0 || time.Since(asked) >= s.FetchWait/2 {
		s.Idle.Reset()
		s.Stats.FetchBytes.Add(resp.Bytes())
		return nil
	}
	resp.Release()
	if !s.Turn.holding() {
		s.Turn.letGo()
	}
	pause, _ := s.Idle.Pause()
	return retry.Sleep(ctx, min(pause, max(s.FetchWait, 100*time.Millisecond)))
}

// sameLog halts if the log has lost records that were read. Then the next records belong to a later leader
// epoch, and the leader reports an earlier end for the epoch of the records that were read. In order:
//
//	this worker                       the partition
//	                                  leader A, epoch 7, has records up to offset 500
//	reads to 500: lineage 7@500
//	                                  A dies; B, which has them only up to 450, is elected, epoch 8
//	                                  producers write 450 to 600 to B
//	fetches at 500: records of epoch 8
//	asks B where epoch 7 ends: 450
//
// All batches of a response are from one moment, so only the first can differ from the log that was read
// before.
func (s *Source) sameLog(ctx context.Context, offset int64, resp *fetch.Response) error {
	first, last, next, ok := resp.Epochs()
	was := s.Lineage
	if !ok || next <= was.Offset {
		return nil
	}
	if was.Offset > 0 && offset >= was.Offset && first > was.Epoch {
		end, err := kafkaconn.EpochEnd(ctx, s.Kafka, s.Topic, s.Number, was.Epoch)
		if err != nil {
			return err
		}
		if err := start.Lost(s.Field, was, end, was.Offset); err != nil {
			return err
		}
	}
	s.Lineage = trail.Lineage{Offset: next, Epoch: max(last, 0)}
	return nil
}

const (
	// throttleStarves is how long a partition may get only throttled answers before it counts as waiting.
	throttleStarves = time.Minute
)

// starved returns the wait of a partition that has had only throttled answers for a while.
func starved(field string, since time.Time) error {
	return &health.Waiting{Reason: health.WaitsThrottled, Err: fmt.Errorf("%s has got nothing since %s: a quota of Kafka's holds back every answer",
		field, since.UTC().Format(time.RFC3339)), Remedy: health.ThrottleRemedy}
}
