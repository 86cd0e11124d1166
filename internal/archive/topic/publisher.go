package topic

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"

	"github.com/standings/standings/internal/archive"
	"github.com/standings/standings/internal/archive/store"
	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking/boards"
)

// Config is what a Publisher is made of.
type Config struct {
	Boards *boards.Boards
	// Archive is where windows are published from once they are in it; nil: from Redis.
	Archive *store.Store
	// Kafka reads; its transport knows the topic and that of what is published.
	Kafka *kafka.Client
	// Producer makes what writes: records go to the partitions that they name, and are acknowledged by
	// all replicas in sync.
	Producer        func(...kgo.Opt) (*kgo.Client, error)
	Topic           string
	TransactionalID string
	Source          string // of CloudEvents, as SourceOf makes it
	// Lateness, Zone and Fields are an archiver's.
	Lateness func(ledger.Window) (time.Duration, bool)
	Zone     func(period string) string
	Fields   func(board string) []codec.Field
	// Ready, where there is one, has the topics be there, as this user may use them: before the first
	// session, and after one that has failed.
	Ready func(context.Context) error
	// Explain says what an error of Kafka's means for the user, of one of the two topics.
	Explain func(ctx context.Context, err error, topic string) error
	// Report, where there is one, is called before a window, after every thousand standings, and at the end of a
	// pass.
	Report func(Progress)
	Log    *zap.Logger
}

// Progress is how far a publisher has come.
type Progress struct {
	Windows   int64 // that this publisher has published
	Standings int64 // in them, and in the one that is being published
	// Waiting is how many final windows aren't published yet, and Oldest when the first of them was
	// sealed; zero where none waits.
	Waiting int
	Oldest  time.Time
}

// Publisher publishes final windows. It is used by one goroutine.
type Publisher struct {
	Config

	source    source
	timeouts  []time.Duration
	stall     time.Duration
	ready     bool
	session   *session             // nil: none is open
	published map[string]published // as of the last session; nil before the first
	end       int64                // of the topic of what is published, as it was last seen
	known     map[string]seal      // by window: the seal of which it is known that nothing is to be published
	later     map[string]time.Time // windows that took too long aren't tried before
	progress  Progress
}

// seal is which one of a window's it is.
type seal struct{ revision, at int64 }

func sealOf(c *boards.Closed) seal { return seal{c.Revision, c.SealedAt.UnixMicro()} }

// New makes a publisher. It talks to nobody.
func New(c Config) *Publisher {
	if c.Report == nil {
		c.Report = func(Progress) {}
	}
	p := &Publisher{Config: c, timeouts: timeouts, stall: stallLimit, known: map[string]seal{}, later: map[string]time.Time{}}
	if c.Archive != nil {
		p.source = fromArchive{c.Archive}
	} else {
		p.source = fromRedis{archive.New(archive.Config{Boards: c.Boards, Lateness: c.Lateness, Zone: c.Zone, Fields: c.Fields, Log: c.Log})}
	}
	return p
}

const (
	// listPause is between two pages of 500 listed windows.
	listPause = 25 * time.Millisecond
	// laterAfter is when a window is tried again that took too long, the others first.
	laterAfter = time.Hour
	// mostFailed is how many windows a pass fails at before it ends.
	mostFailed = 3
	// reportEvery is how many standings are sent between two reports.
	reportEvery = 1000
)

// Reached is how far it has come.
func (p *Publisher) Reached() Progress { return p.progress }

// Pass publishes all final windows that aren't published, by their ends, and has those stay in
// Redis that would expire before. A window that can't be published leaves the others to be; the error
// says what came of it. Where another publishes the error is ErrFenced, and the pass ends.
//
// A producer lives for a pass: one that is idle for a week is forgotten by its coordinator.
func (p *Publisher) Pass(ctx context.Context) error {
	defer p.close()
	p.look(ctx)
	closed, err := p.Boards.Closed(ctx, p.Lateness, listPause)
	if err != nil {
		return fmt.Errorf("look which windows are final: %w", err)
	}
	p.forget(closed)
	var final, open []boards.Closed
	for i := range closed {
		switch c := &closed[i]; {
		case c.Revision == 0:
			open = append(open, *c)
		case p.known[c.Listing()] != sealOf(c):
			final = append(final, *c)
		}
	}
	var failed []error
	if p.published == nil && len(final) > 0 { // most windows are found in it
		if err := p.begin(ctx); err != nil {
			failed = append(failed, err)
		}
	}
	final = slices.DeleteFunc(final, func(c boards.Closed) bool { return p.is(&c) })
	place := archive.Place{Name: "topic", Text: "the topic " + p.Topic, Lateness: p.Lateness}
	if err := place.Release(ctx, p.Boards, closed, func(c *boards.Closed) bool { return c.Revision > 0 && p.known[c.Listing()] == sealOf(c) }); err != nil {
		failed = append(failed, err)
	}
	if err := place.Stay(ctx, p.Boards, slices.Concat(open, final), p.Log); err != nil {
		failed = append(failed, err)
	}
	if p.published == nil {
		p.reported(final)
		return errors.Join(failed...)
	}
	for i := range final {
		p.progress.Waiting, p.progress.Oldest = len(final)-i, final[i].SealedAt
		p.Report(p.progress)
		switch err := p.one(ctx, &final[i]); {
		case ctx.Err() != nil || errors.Is(err, ErrFenced):
			return err
		case errors.Is(err, archive.ErrChanged):
			p.Log.Info("a window changed while it was published: it is published anew", zap.String("window", final[i].Listing()), zap.Error(err))
		case err != nil:
			failed = append(failed, err)
		}
		if len(failed) >= mostFailed {
			break // it isn't about single windows
		}
	}
	p.reported(final)
	return errors.Join(failed...)
}

// close closes the session; the next begins with what is published by then.
func (p *Publisher) close() {
	if p.session != nil {
		p.session.client.Close()
		p.session = nil
	}
}

// forget lets go of what is known of windows that aren't listed any more.
func (p *Publisher) forget(closed []boards.Closed) {
	listed := map[string]bool{}
	for i := range closed {
		listed[closed[i].Listing()] = true
	}
	maps.DeleteFunc(p.known, func(name string, _ seal) bool { return !listed[name] })
	maps.DeleteFunc(p.later, func(name string, _ time.Time) bool { return !listed[name] })
}

// reported reports how many of some windows aren't published.
func (p *Publisher) reported(final []boards.Closed) {
	p.progress.Waiting, p.progress.Oldest = 0, time.Time{}
	for i := range final {
		if c := &final[i]; p.known[c.Listing()] != sealOf(c) {
			if p.progress.Waiting++; p.progress.Oldest.IsZero() || c.SealedAt.Before(p.progress.Oldest) {
				p.progress.Oldest = c.SealedAt
			}
		}
	}
	p.Report(p.progress)
}

// one publishes a window, or finds that it is published. An error ends the session.
func (p *Publisher) one(ctx context.Context, c *boards.Closed) (err error) {
	defer func() {
		if err != nil {
			p.close()
			p.ready = false // a topic may have been deleted
		}
	}()
	if time.Now().Before(p.later[c.Listing()]) {
		return nil
	}
	w, ok, err := p.source.window(ctx, c)
	if err != nil || !ok {
		return err // one that isn't in the archive yet waits for that
	}
	if p.session == nil {
		if err := p.begin(ctx); err != nil {
			return fmt.Errorf("publish %s: %w", c.Listing(), err)
		}
		if p.is(c) {
			return nil
		}
	}
	if was, ok := p.published[p.key(c)]; ok {
		return p.compare(ctx, c, &w, was)
	}
	err = p.publish(ctx, c, &w)
	if errors.Is(err, ErrTooLong) {
		p.later[c.Listing()] = time.Now().Add(laterAfter)
		return fmt.Errorf("publish %s, %d members: after %v, the longest that its brokers allow (transaction.max.timeout.ms), it wasn't through; it is tried again in %v: %w",
			c.Listing(), w.Members, p.session.timeout, laterAfter, err)
	}
	if err != nil {
		return fmt.Errorf("publish %s: %w", c.Listing(), err)
	}
	return nil
}

// begin opens a session, if none is open, and learns by it what is published.
func (p *Publisher) begin(ctx context.Context) (err error) {
	if p.session == nil {
		if !p.ready && p.Ready != nil {
			if err := p.Ready(ctx); err != nil {
				return err
			}
		}
		p.session, err = p.open(ctx)
		if p.ready = err == nil; p.ready {
			p.published, p.end = p.session.published, p.session.end
		}
	}
	return p.explain(ctx, err)
}

func (p *Publisher) key(c *boards.Closed) string {
	return revisionKey(windowKey(c.Board, c.Period, c.Name), c.Revision)
}

// is reports whether this very seal of a window is published.
func (p *Publisher) is(c *boards.Closed) bool {
	was, ok := p.published[p.key(c)]
	if ok && was.sealedAt == c.SealedAt.UnixMilli() {
		p.known[c.Listing()] = sealOf(c)
		return true
	}
	return false
}

// publish sends a window, all of it or nothing.
func (p *Publisher) publish(ctx context.Context, c *boards.Closed, w *store.Window) error {
	began, s := time.Now(), p.session
	partition := kafka.Murmur2Balancer{}.Balance(kafka.Message{Key: []byte(windowKey(w.Board, w.Period, w.Name))}, kafkaPartitions(s.partitions)...)
	r := newRecords(p.Topic, int32(partition), p.Source, w)
	is := published{sealedAt: w.SealedAt.UnixMilli()}
	before := p.progress.Standings
	var reading error // of where the rows are from
	err := s.transaction(ctx, p.stall, func(ctx context.Context, send func(*kgo.Record)) error {
		header, err := r.header()
		if err != nil {
			return err
		}
		send(header)
		for row, err := range p.source.rows(ctx, c, w) {
			if err != nil {
				reading = err
				return err
			}
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			is.members++
			is.checksum.Add(&row, len(w.Fields))
			send(r.standing(&row))
			if p.progress.Standings++; is.members%reportEvery == 0 {
				p.Report(p.progress)
			}
		}
		if is.members != w.Members {
			reading = fmt.Errorf("%w: there are %d rows of %d members", archive.ErrChanged, is.members, w.Members)
			return reading
		}
		trailer, err := r.trailer(is.members, is.checksum)
		if err != nil {
			return err
		}
		done, err := r.done(is)
		if err != nil {
			return err
		}
		send(trailer)
		send(done)
		return nil
	})
	if err != nil {
		p.progress.Standings = before
		if reading != nil {
			return err
		}
		return p.explain(ctx, err)
	}
	s.published[p.key(c)] = is
	p.known[c.Listing()] = sealOf(c)
	delete(p.later, c.Listing())
	p.progress.Windows++
	p.Log.Info("a final window is published", zap.String("topic", p.Topic), zap.Int("partition", partition), zap.String("window", c.Listing()), zap.Int64("revision", w.Revision),
		zap.Int64("members", is.members), zap.Stringer("checksum", is.checksum), zap.Duration("took", time.Since(began)))
	return nil
}

func kafkaPartitions(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// compare holds a window that was sealed again against what was published as the same revision.
func (p *Publisher) compare(ctx context.Context, c *boards.Closed, w *store.Window, was published) error {
	var is published
	for row, err := range p.source.rows(ctx, c, w) {
		if err != nil {
			return fmt.Errorf("compare %s with what was published: %w", c.Listing(), err)
		}
		is.members++
		is.checksum.Add(&row, len(w.Fields))
	}
	if is.members == was.members && is.checksum == was.checksum {
		p.Log.Info("a window that was sealed again has the standings that were published", zap.String("window", c.Listing()), zap.Int64("revision", c.Revision))
		p.known[c.Listing()] = sealOf(c)
		return nil
	}
	if err := archive.Unseal(ctx, p.Boards, c, fmt.Sprintf("other standings were published as revision %d", c.Revision)); err != nil {
		return fmt.Errorf("take back the seal of %s, of whose revision %d other standings were published: %w", c.Listing(), c.Revision, err)
	}
	p.Log.Warn("a window that was sealed again has other standings than were published: it is sealed as the next revision, and that is published, too",
		zap.String("window", c.Listing()), zap.Int64("revision", c.Revision), zap.Int64("members", is.members), zap.Int64("published", was.members))
	return nil
}
