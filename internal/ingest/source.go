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

// source fetches a partition's records and waits out transient errors, for a reader or a rereading. Only its
// reader's goroutine uses it.
type source struct {
	*partition
	fetcher   *fetch.Fetcher
	fetchWait time.Duration // how long a broker may delay an empty answer
	turn      *turn
	hurried   bool                // others wait for it to end: it gives up on long outages and quotas
	waits     func(error)         // receives what it waits for; nil once it continues
	idle      *retry.Backoff      // between empty answers that come at once
	end       start.LogEnd        // how long the leader has reported the log's end
	lineage   trail.Lineage       // of what was read; unknown if it does not matter
	written   *deadletter.Written // dead letters of the records that it reads; void if the log ends before them
	status    *health.Status
	lag       *health.LagTracker
	stats     *Stats
}

// fetch requests records until the leader answers. It waits out transient errors: of the broker, of the
// connection, and an exhausted quota. Permanent errors end the flow. It returns errNoMemory if others want the
// memory that this partition would hold while it waits.
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
			throttled := resp.Throttled // releasing memory also releases the response
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
				continue // the next call waits for that time
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

// leftAlone handles an answer without data of the partition, after no other answer since a time. It reports
// whether the memory goes to other partitions.
func (s *source) leftAlone(since time.Time) bool {
	s.end.Unseen()
	if time.Since(since) >= throttleStarves {
		s.waits(starved(s.field, since))
	} else {
		s.waits(nil)
	}
	return s.turn.yields(since, throttlePatience)
}

// failing handles a transient error, after no answer since a time. It reports whether the memory goes to other
// partitions.
func (s *source) failing(err error, since time.Time) bool {
	s.end = start.LogEnd{} // the next answer may come from another leader
	s.waits(err)
	s.stats.KafkaTries.Add(1)
	return s.turn.yields(since, outagePatience)
}

// throttled records for how long a broker throttles the client; 0 in most answers.
func (s *source) throttled(d time.Duration) {
	s.stats.Throttled.Add(int64(d))
	s.status.Throttled(d)
}

// answered handles a leader's answer. If the log ends with an open transaction, brokers return empty answers at
// once, thousands of times a second: answered then waits.
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
	// throttleStarves is how long a partition may get only throttled answers before it counts as waiting.
	throttleStarves = time.Minute
)

// starved returns the wait of a partition that has had only throttled answers for a while.
func starved(field string, since time.Time) error {
	return &health.Waiting{Reason: health.WaitsThrottled, Err: fmt.Errorf("%s has got nothing since %s: a quota of Kafka's holds back every answer",
		field, since.UTC().Format(time.RFC3339)), Remedy: health.ThrottleRemedy}
}
