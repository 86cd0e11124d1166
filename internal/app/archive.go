package app

// The configured archive, and how it describes windows.

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/standings/standings/internal/archive/store"
	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/jobs"
	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/reading"
)

// OpenArchive opens the archive; it returns nil if none is configured. The caller must check or migrate the
// schema.
func OpenArchive(ctx context.Context, cfg *config.Config) (*store.Store, error) {
	if cfg.Archive.URL == "" {
		return nil, nil
	}
	return store.Open(ctx, cfg.Archive.URL)
}

// Fenced returns err. If a job's write to the archive was fenced, it adds the archive's token.
func Fenced(ctx context.Context, s *store.Store, err error) error {
	if !errors.Is(err, store.ErrFenced) {
		return err
	}
	token, unknown := s.LargestToken(ctx)
	if unknown != nil {
		return errors.Join(err, unknown)
	}
	return &jobs.FencedError{Floor: token, Err: err}
}

// Archive is the archive for readers. It may be unavailable. The first read opens it and checks its schema;
// after a failure, a read opens it again once openAgain has passed.
type Archive struct {
	cfg     *config.Config
	say     func(error)                             // see Say
	observe func(result string, took time.Duration) // see Observe
	ready   atomic.Pointer[store.Store]             // its schema was checked

	turn   chan struct{} // held by the reader that opens it, which guards what follows
	said   bool          // say was called
	store  *store.Store
	err    error // why it is not ready
	tried  time.Time
	closed bool
}

// openAgain is the minimum time between a failure and the next attempt to open.
const openAgain = time.Second

// newArchive returns the archive of a configuration; nil if none is configured. It does not open it.
func newArchive(cfg *config.Config) *Archive {
	if cfg.Archive.URL == "" {
		return nil
	}
	return &Archive{cfg: cfg, turn: make(chan struct{}, 1)}
}

// Say sets a function that is called with an error when the archive can no longer be read, and with nil when it
// can. Say must be called before the archive is opened.
func (a *Archive) Say(say func(error)) {
	if a != nil {
		a.say = say
	}
}

// Observe sets a function that is called after every read of a board or a list. Observe must be called before a
// reader is created.
func (a *Archive) Observe(observe func(result string, took time.Duration)) {
	if a != nil {
		a.observe = observe
	}
}

// Open returns the archive once it is open and its schema is this program's. It returns store.ErrEmpty if the
// archive has no schema yet. If another reader is opening it, Open waits for that.
func (a *Archive) Open(ctx context.Context) (*store.Store, error) {
	if s := a.ready.Load(); s != nil {
		return s, nil
	}
	select {
	case a.turn <- struct{}{}:
		defer func() { <-a.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	s := a.ready.Load()
	switch {
	case a.closed:
		return nil, fmt.Errorf("the archive is closed: %w", context.Canceled)
	case s != nil:
		return s, nil
	case a.err != nil && time.Since(a.tried) < openAgain:
		return nil, a.err
	}
	err := a.open(ctx)
	if a.say != nil && (!a.said || (err == nil) != (a.err == nil)) {
		a.say(err)
	}
	a.said, a.err, a.tried = true, err, time.Now()
	if err != nil {
		return nil, err
	}
	a.ready.Store(a.store)
	return a.store, nil
}

func (a *Archive) open(ctx context.Context) (err error) {
	if a.store == nil {
		if a.store, err = store.Open(ctx, a.cfg.Archive.URL); err != nil {
			return err
		}
	}
	return a.store.Check(ctx)
}

// Close closes the archive. No reader may use it any more.
func (a *Archive) Close() {
	if a == nil {
		return
	}
	a.turn <- struct{}{} // a reader that opens it finishes first
	defer func() { <-a.turn }()
	a.closed = true
	a.ready.Store(nil)
	if a.store != nil {
		_ = a.store.Close() // nothing can be done about an error here
	}
}

// reading returns the archive for a reader of boards, with the maximum number of concurrent reads.
func (a *Archive) reading(cfg *config.Config, reads int) *reading.Archive {
	if a == nil {
		return nil
	}
	return &reading.Archive{Open: a.Open, Timeout: cfg.API.Timeout, Reads: reads, Observe: a.observe}
}

// traces returns the function for ingest.Config.Traces, which looks for windows in the archive and for records
// in the final topic.
func traces(cfg *config.Config, client *kafka.Client) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		if some, err := archived(ctx, cfg); some || err != nil {
			return "the archive has windows", err
		}
		topic := cfg.Kafka.FinalTopic
		if topic == "" {
			return "", nil
		}
		n, err := kafkaconn.TopicPartitions(ctx, client, topic)
		if errors.Is(err, kafkaconn.ErrNoTopic) {
			return "", nil
		}
		if err != nil {
			return "", err
		}
		logs, err := kafkaconn.AllLogs(ctx, client, topic, n)
		if err != nil {
			return "", err
		}
		for _, log := range logs {
			if log.End > log.Start {
				return "topic " + topic + " has final windows", nil
			}
		}
		return "", nil
	}
}

// archived reports whether the archive has any window.
func archived(ctx context.Context, cfg *config.Config) (some bool, err error) {
	archive, err := OpenArchive(ctx, cfg)
	if archive == nil || err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, archive.Close()) }()
	if err := archive.Check(ctx); err != nil {
		if errors.Is(err, store.ErrEmpty) {
			return false, nil
		}
		return false, err
	}
	windows, err := archive.Windows(ctx, store.Filter{}, store.Place{}, 1)
	if err != nil {
		return false, fmt.Errorf("look for windows in the archive: %w", err)
	}
	return len(windows) > 0, nil
}

// Lateness returns a function for how long after its end a window accepts events. The function reports false if
// the window's period is not enabled.
func Lateness(cfg *config.Config) func(ledger.Window) (time.Duration, bool) {
	all := map[string]time.Duration{}
	for _, p := range cfg.Kept() {
		all[string(p.Name)] = cfg.LatenessOf(p)
	}
	return func(w ledger.Window) (time.Duration, bool) {
		late, ok := all[w.Period]
		return late, ok
	}
}

// Zones returns a function for the time zone in which a period's times are shown.
func Zones(cfg *config.Config) func(period string) string {
	return func(period string) string { return cfg.ZoneOf(periods.Period(period)) }
}

// ArchivedFields returns a function for a board's fields. The function returns nil for a board with the default
// rule.
func ArchivedFields(cfg *config.Config) (func(board string) []codec.Field, error) {
	own, err := cfg.Rules()
	if err != nil {
		return nil, err
	}
	return func(board string) []codec.Field {
		if r := own.Of(board); r != nil {
			return r.Fields.List()
		}
		return nil
	}, nil
}
