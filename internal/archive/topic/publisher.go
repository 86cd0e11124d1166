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

// Config is the configuration of a Publisher.
type Config struct {
	Boards *boards.Boards
	// Archive is the archive from which windows are published once they are in it; nil: they are published from
	// Redis.
	Archive *store.Store
	// Kafka is the client for reads. Its transport knows both topics.
	Kafka *kafka.Client
	// Producer returns the client for writes. It must send records to the partitions that they name, and wait for
	// all in-sync replicas.
	Producer        func(...kgo.Opt) (*kgo.Client, error)
	Topic           string
	TransactionalID string
	Source          string // CloudEvents source, from SourceOf
	// Lateness, Zone and Fields are as in archive.Config.
	Lateness func(ledger.Window) (time.Duration, bool)
	Zone     func(period string) string
	Fields   func(board string) []codec.Field
	// Ready, if set, creates missing topics and checks this user's rights to them. It is called before the first
	// session, and after a failed one.
	Ready func(context.Context) error
	// Explain adds what an error of Kafka about one of the two topics means for the user.
	Explain func(ctx context.Context, err error, topic string) error
	// Report, if set, is called before a window, after every thousand standings, and at the end of a pass.
	Report func(Progress)
	Log    *zap.Logger
}

// Progress reports the state of a publisher.
type Progress struct {
	Windows   int64 // published by this publisher
	Standings int64 // in these windows and the one being published
	// Waiting is the number of final windows not published yet, and Oldest the earliest sealing time among them;
	// zero if none waits.
	Waiting int
	Oldest  time.Time
}

// Publisher publishes final windows. It must be used by one goroutine.
type Publisher struct {
	Config

	source    source
	timeouts  []time.Duration
	stall     time.Duration
	ready     bool
	session   *session             // nil: none is open
	published map[string]published // as of the last session; nil before the first
	end       int64                // last known end of the topic of published windows
	known     map[string]seal      // by window: the seal known to need no publication
	later     map[string]time.Time // windows that took too long: not tried before this time
	progress  Progress
}

// seal identifies a window's seal.
type seal struct{ revision, at int64 }

func sealOf(c *boards.Closed) seal { return seal{c.Revision, c.SealedAt.UnixMicro()} }

// New returns a publisher. It does not connect to Kafka or Redis.
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
	// listPause is the pause between two pages of 500 listed windows.
	listPause = 25 * time.Millisecond
	// laterAfter is how long a window that took too long waits for its next attempt.
	laterAfter = time.Hour
	// mostFailed is the number of failed windows after which a pass ends.
	mostFailed = 3
	// reportEvery is the number of standings between two reports.
	reportEvery = 1000
)

// Pass publishes all final windows that are not published, earliest end first, and prolongs those that would
// expire from Redis before. A window that cannot be published does not prevent the others; the error names the
// causes. If another process publishes, the pass ends with ErrFenced.
//
// Each pass uses a new producer, since the coordinator forgets a producer that is idle for a week.
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
		case !p.has(c):
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
	if err := place.Release(ctx, p.Boards, closed, p.has); err != nil {
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
			p.Log.Info("a window changed while it was published: publishing it again", zap.String("window", final[i].Listing()), zap.Error(err))
		case err != nil:
			failed = append(failed, err)
		}
		if len(failed) >= mostFailed {
			break // the cause is not a single window
		}
	}
	p.reported(final)
	return errors.Join(failed...)
}

// close closes the session. The next session reads the published windows again.
func (p *Publisher) close() {
	if p.session != nil {
		p.session.client.Close()
		p.session = nil
	}
}

// forget drops the state of windows that are no longer listed.
func (p *Publisher) forget(closed []boards.Closed) {
	listed := map[string]bool{}
	for i := range closed {
		listed[closed[i].Listing()] = true
	}
	maps.DeleteFunc(p.known, func(name string, _ seal) bool { return !listed[name] })
	maps.DeleteFunc(p.later, func(name string, _ time.Time) bool { return !listed[name] })
}

// reported reports how many of the windows are not published.
func (p *Publisher) reported(final []boards.Closed) {
	p.progress.Waiting, p.progress.Oldest = archive.Waiting(final, p.has)
	p.Report(p.progress)
}

// has reports whether a final window is known to need no publication.
func (p *Publisher) has(c *boards.Closed) bool {
	return c.Revision > 0 && p.known[c.Listing()] == sealOf(c)
}

// one publishes a window, unless it is published already. An error ends the session.
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
		return err // if the window is not in the archive yet, a later pass publishes it
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

// begin opens a session, if none is open, and reads which windows are published.
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

// is reports whether a window is published with this seal.
func (p *Publisher) is(c *boards.Closed) bool {
	was, ok := p.published[p.key(c)]
	if ok && was.sealedAt == c.SealedAt.UnixMilli() {
		p.known[c.Listing()] = sealOf(c)
		return true
	}
	return false
}

// publish sends a window in one transaction.
func (p *Publisher) publish(ctx context.Context, c *boards.Closed, w *store.Window) error {
	began, s := time.Now(), p.session
	partition := kafka.Murmur2Balancer{}.Balance(kafka.Message{Key: []byte(windowKey(w.Board, w.Period, w.Name))}, kafkaPartitions(s.partitions)...)
	r := newRecords(p.Topic, int32(partition), p.Source, w)
	is := published{sealedAt: w.SealedAt.UnixMilli()}
	before := p.progress.Standings
	var reading error // an error of the source of the rows
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

// compare compares a window that was sealed again with what was published as the same revision.
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
