package ban

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/segmentio/kafka-go"
	"go.uber.org/zap"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/cmd/consumer/clients"
	"github.com/standings/standings/cmd/consumer/config"
	"github.com/standings/standings/cmd/consumer/units"
	"github.com/standings/standings/internal/bans"
	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/retry"
)

// readWithin is how long the bans topic may take to be read.
const readWithin = 30 * time.Second

// session is the bans topic, read to its end and followed, and what Redis holds.
type session struct {
	p         *cli.Program
	cfg       *config.Config
	client    *kafka.Client
	reader    *clients.Reader
	hidden    bans.Standings
	publisher *bans.Publisher
	stop      func()
}

// open reads the topic to its end. With write it is made where it is missing.
func open(ctx context.Context, p *cli.Program, cfg *config.Config, write bool) (*session, error) {
	topic := cfg.Kafka.BansTopic
	if topic == "" {
		return nil, cli.Usagef("kafka.bans_topic isn't set: nobody can be banned without a topic to keep it in, which has to be the same for all consumers")
	}
	client, err := clients.NewKafka(&cfg.Kafka, topic, cfg.Kafka.Topics[0])
	if err != nil {
		return nil, err
	}
	s := &session{p: p, cfg: cfg, client: client, stop: func() {}}
	if s.reader, err = clients.OpenReader(ctx, cfg); err != nil {
		s.close()
		return nil, err
	}
	s.hidden = clients.NewHidden(s.reader.Boards)
	if err := s.prepare(ctx, write); err != nil {
		s.close()
		return nil, s.explain(ctx, err)
	}
	f := bans.NewFollower(client, topic, zap.NewNop())
	following, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		f.Run(following)
	}()
	s.stop = func() { stop(); <-ended }
	s.publisher = &bans.Publisher{Follower: f}
	if err := s.ready(ctx, f); err != nil {
		s.close()
		return nil, s.explain(ctx, err)
	}
	if n := f.Bad(); n > 0 {
		fmt.Fprintf(p.Stderr, "note: %s of %s that are no bans were ignored; the consumer logs which\n", units.Plural(n, "record"), topic)
	}
	return s, nil
}

func (s *session) prepare(ctx context.Context, write bool) error {
	topic := s.cfg.Kafka.BansTopic
	if !write {
		_, err := kafkaconn.TopicPartitions(ctx, s.client, topic)
		return err
	}
	if _, err := bans.Ensure(ctx, s.client, topic, s.cfg.Kafka.Topics[0]); err != nil && !errors.Is(err, bans.ErrUnchecked) {
		return err
	}
	return kafkaconn.CheckRights(ctx, s.client,
		bans.Need(topic),
		kafkaconn.Right{Operation: kafka.ACLOperationTypeWrite, Topic: topic, For: "to ban"})
}

func (s *session) ready(ctx context.Context, f *bans.Follower) error {
	within, cancel := context.WithTimeout(ctx, readWithin)
	defer cancel()
	err := f.Ready(within, 0)
	if err != nil && ctx.Err() == nil {
		if waits := f.Waits(); waits != nil {
			err = waits
		}
		return fmt.Errorf("read %s to its end: %w", f.Topic, err)
	}
	return err
}

func (s *session) close() {
	s.stop()
	if s.reader != nil {
		s.reader.Close()
	}
	clients.CloseKafka(s.client)
}

func (s *session) explain(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return errors.New("interrupted; consumer bans shows whether it was recorded")
	case errors.Is(err, cli.ErrUsage), errors.As(err, new(*bans.TopicError)), errors.Is(err, bans.ErrErased):
		return err
	}
	if _, answered := errors.AsType[kafka.Error](err); answered {
		return clients.ExplainKafka(ctx, err, &s.cfg.Kafka, s.cfg.Kafka.BansTopic)
	}
	return err
}

// now is Redis's time, which bans end by; where Redis is away, this machine's.
func (s *session) now(ctx context.Context) time.Time {
	now, err := s.hidden.Now(ctx)
	if err != nil {
		now = time.Now()
	}
	return now.Truncate(time.Millisecond)
}

// looks is how often Redis is looked at.
var looks = retry.Policy{First: 20 * time.Millisecond, Longest: 500 * time.Millisecond}

// await waits until Redis holds of a key what the topic says. Its error says why that can't be
// said yet, and reads on behind "recorded".
func (s *session) await(ctx context.Context, k bans.Key, patience time.Duration) error {
	within, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var last error
	for wait := looks.Start(); ; {
		// After a reshard nobody is banned on the shards that were: an unban would look done.
		if last = s.reader.Renumber(within); last == nil {
			var inLine bool
			s.hidden = clients.NewHidden(s.reader.Boards)
			if inLine, last = s.inLine(within, k); inLine && last == nil {
				return nil
			}
		}
		if wait.Next(within) != nil {
			break
		}
	}
	if last != nil && !errors.Is(last, context.DeadlineExceeded) {
		return fmt.Errorf("Redis wasn't looked at (%w): a running consumer does the rest", last)
	}
	return fmt.Errorf("No consumer has done it in Redis within %s: one that runs will, as soon as it reads %s; consumer bans shows when",
		units.FormatDuration(patience), s.cfg.Kafka.BansTopic)
}

func (s *session) inLine(ctx context.Context, k bans.Key) (bool, error) {
	now, err := s.hidden.Now(ctx)
	if err != nil {
		return false, err
	}
	found, err := s.hidden.Banned(ctx)
	if err != nil {
		return false, err
	}
	r := s.publisher.Follower.State()[k]
	return agree(r != nil && r.InForce(now), r != nil && r.Erased, k, found), nil
}

// agree reports whether Redis holds a ban as the topic has it.
func agree(inForce, erased bool, k bans.Key, found []bans.Ban) bool {
	for _, b := range found {
		if b.Key == k {
			return inForce && !b.Pending && b.Erased == erased
		}
	}
	return !inForce
}
