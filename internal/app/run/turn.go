package run

// What is looked at from time to time, for the metrics: by one replica of all, or by each.

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/standings/standings/internal/ingest"
	"github.com/standings/standings/internal/ranking"
)

// turn is something to look at from time to time while this process has the first topic's
// first partition: some replica does, and no other. Without a topic it is every replica's.
type turn struct {
	topic string
	every time.Duration
	what  string // is looked at: "count the boards"
	look  func(context.Context) error
	none  func() // has nothing reported, rather than something old
}

// turnCheck is how often it is checked whose turn it is.
const turnCheck = time.Second

// watch returns when the context ends.
func (t turn) watch(ctx context.Context, now func() ingest.Snapshot, log *zap.Logger) {
	tick := time.NewTicker(turnCheck)
	defer tick.Stop()
	var looked time.Time
	failed := false
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		switch {
		case t.topic != "" && !hasFirst(now(), t.topic):
			t.none()
			looked = time.Time{}
			continue
		case time.Since(looked) < t.every:
			continue
		}
		looked = time.Now()
		err := t.look(ctx)
		if ctx.Err() != nil {
			return
		}
		if none, ok := errors.AsType[*ranking.SchemaError](err); ok && none.Found == "" { // nothing has begun yet
			t.none()
			looked = time.Time{}
			continue
		}
		if err != nil && !failed {
			log.Warn("couldn't "+t.what+"; trying again", zap.Error(err))
		}
		if failed = err != nil; failed {
			t.none()
		}
	}
}

func hasFirst(s ingest.Snapshot, topic string) bool {
	for _, p := range s.Partitions {
		if p.Topic == topic && p.Partition == 0 {
			return true
		}
	}
	return false
}
