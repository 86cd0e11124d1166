package scan

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/kafkaconn/recordbatch"
	"github.com/standings/standings/internal/terminal"
)

// Reading reads stretches for a person who waits: it shows the progress, and reports once if a quota slows
// it down.
type Reading struct {
	Stderr io.Writer
	// Explain explains a Kafka error that ended the reading of a topic.
	Explain func(ctx context.Context, err error, topic string) error

	slowed bool
}

// Each calls take for all records of some stretches, one stretch after another, as Stretch.Each does. It
// shows the progress if stderr is a terminal, unless quiet is set because other output is written there. An
// error of take ends the reading and is returned unchanged.
func (r *Reading) Each(ctx context.Context, what string, all []*Stretch, quiet bool, take func(*Stretch, *recordbatch.Record) error) error {
	note := func(line string) { fmt.Fprintln(r.Stderr, line) }
	var passed atomic.Int64
	if _, ok := terminal.Width(r.Stderr); ok && !quiet {
		total := int64(0)
		for _, s := range all {
			total += max(0, s.End-s.From)
		}
		shown := terminal.ShowProgress(r.Stderr, what, "offsets", total, passed.Load)
		defer shown.Stop()
		note = shown.Note
	}
	for _, s := range all {
		s.Passed = func(n int64) { passed.Add(n) }
		s.Throttled = func() {
			if !r.slowed {
				note("note: a quota of Kafka's (consumer_byte_rate of this user or of client id " + kafkaconn.ClientID + ") slows this down")
			}
			r.slowed = true
		}
		var own error // from take, not from Kafka
		err := s.Each(ctx, func(rec *recordbatch.Record) error {
			own = take(s, rec)
			return own
		})
		if own != nil {
			return own
		}
		if err != nil {
			return r.Explain(ctx, err, s.Topic)
		}
	}
	return nil
}
