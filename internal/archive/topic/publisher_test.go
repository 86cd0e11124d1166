package topic

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/standings/standings/internal/archive/finaltest"
	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/test/testenv"
)

func headers(r *kgo.Record) map[string]string {
	all := map[string]string{}
	for _, h := range r.Headers {
		all[h.Key] = string(h.Value)
	}
	return all
}

func TestAFinalWindowIsPublishedWholeInTheOrderOfItsRanks(t *testing.T) {
	testenv.SlowEmbedded(t)
	for _, of := range []ledger.Shards{1, 3} {
		for _, rule := range []string{"", finaltest.ByRule} {
			for _, archived := range []bool{false, true} {
				if of == 1 && archived {
					continue // an archive's copy does not depend on shards
				}
				t.Run(fmt.Sprint(of, rule, archived), func(t *testing.T) {
					f := newFixture(t, testenv.Kafka(t), of, rule, 4)
					f.Fill(5000)
					for _, row := range f.Shown()[:3] {
						f.Hide(row.Member)
					}
					c := f.config()
					var archive func(int64)
					if archived {
						c.Archive, archive = f.archived()
					}
					p := New(c)
					require.NoError(t, p.Pass(t.Context()))
					require.Zero(t, f.count(kgo.ReadUncommitted()), "it isn't final yet")
					f.MakeFinal()
					want := f.Shown()
					require.Len(t, want, 4997)
					if archived {
						require.NoError(t, p.Pass(t.Context()))
						require.Zero(t, f.count(kgo.ReadUncommitted()), "it isn't in the archive yet")
						require.Equal(t, 1, p.progress.Waiting)
						archive(1)
					}
					require.NoError(t, p.Pass(t.Context()))
					require.Equal(t, Progress{Windows: 1, Standings: 4997}, p.progress)

					w := f.published(1)
					require.Equal(t, want, w.rows)
					require.EqualValues(t, kafka.Murmur2Balancer{}.Balance(kafka.Message{Key: []byte(f.Listed())}, 0, 1, 2, 3), w.partition)
					h := parse(t, w.header)
					require.Equal(t, []any{f.Board, "weekly", f.Window.Name, int64(1), int64(4997), "Europe/Berlin", f.Layout.Tick},
						[]any{h.Board, h.Period, h.Window, h.Revision, h.Members, h.TimeZone, h.TickMS})
					require.Equal(t, []int64{f.Window.Start, f.Window.End}, []int64{h.Start.UnixMilli(), h.End.UnixMilli()})
					require.Equal(t, []string{}, h.Incomplete)
					require.WithinDuration(t, time.Now(), h.SealedAt, time.Minute)
					if rule == "" {
						require.JSONEq(t, "null", string(h.FieldsText))
					} else {
						require.JSONEq(t, `[{"name":"stage","min":0,"max":999,"better":"most"},{"name":"revives","min":0,"max":99,"better":"fewest"}]`, string(h.FieldsText))
					}
					for kind, r := range map[string]*kgo.Record{"header": w.header, "trailer": w.trailer} {
						require.Equal(t, map[string]string{
							"ce_specversion": "1.0", "ce_id": f.Listed() + ":1:" + kind, "ce_source": "/standings/a%20group/lb", "ce_type": "standings.final." + kind,
							"ce_subject": f.Listed(), "ce_time": h.SealedAt.Format(timeLayout), "content-type": "application/json",
						}, headers(r))
					}

					// Neither this process nor another publishes anything again.
					require.NoError(t, p.Pass(t.Context()))
					other := New(c)
					require.NoError(t, other.Pass(t.Context()))
					require.Equal(t, Progress{}, other.progress)
					f.published(1)
				})
			}
		}
	}
}

func TestARepeatHasTheSameKeysAndIds(t *testing.T) {
	f := newFixture(t, testenv.Kafka(t), 3, "", 3)
	f.Fill(300)
	f.MakeFinal()
	require.NoError(t, f.publisher().Pass(t.Context()))
	forget(f, f.Listed()+":1")
	require.NoError(t, f.publisher().Pass(t.Context()))
	all := f.times(1, 2)
	require.Len(t, all, 2)
	require.Equal(t, all[0].rows, all[1].rows)
	require.Equal(t, all[0].partition, all[1].partition)
	for _, i := range [][2]*kgo.Record{{all[0].header, all[1].header}, {all[0].trailer, all[1].trailer}} {
		require.Equal(t, i[0].Key, i[1].Key)
		require.Equal(t, headers(i[0]), headers(i[1]))
		require.Equal(t, string(i[0].Value), string(i[1].Value))
	}
}

// An operator deletes the topic. The running leader creates it again and publishes final windows again. Otherwise
// no record of the published windows would exist until the next leader, which would publish them.
func TestTheLeaderThatRunsRecordsAgainWhatIsPublishedOnceThatTopicIsDeleted(t *testing.T) {
	f := newFixture(t, testenv.Kafka(t), 1, "", 2)
	f.Fill(50)
	f.MakeFinal()
	done := f.topic + PublishedSuffix
	c := f.config()
	c.Ready = func(ctx context.Context) error {
		_, err := Ensure(ctx, c.Kafka, f.topic, f.topic)
		return err
	}
	var about []string
	c.Explain = func(_ context.Context, err error, topic string) error {
		about = append(about, topic)
		return err
	}
	p := New(c)
	require.NoError(t, p.Pass(t.Context()))
	remove := func() {
		_, err := kadm.NewClient(f.kafka.Client(t)).DeleteTopics(t.Context(), done)
		require.NoError(t, err)
		require.Eventually(t, func() bool {
			found, err := kafkaconn.Partitions(t.Context(), c.Kafka, done)
			return err == nil && found[done] == 0
		}, 30*time.Second, 20*time.Millisecond)
	}
	remove()
	require.NoError(t, p.Pass(t.Context()))
	require.Eventually(t, func() bool { // Kafka replies to a commit before its marker is in the log
		recorded, _, err := readPublished(t.Context(), c.Kafka, done)
		_, ok := recorded[f.Listed()+":1"]
		return err == nil && ok
	}, 30*time.Second, 20*time.Millisecond)
	require.NoError(t, p.Pass(t.Context()))
	require.Len(t, f.times(1, 2), 2)
	require.Empty(t, about)

	remove()
	p.Ready, p.Kafka.Timeout = nil, time.Second
	require.Error(t, p.Pass(t.Context()))
	require.Equal(t, []string{done}, about, "the error is about the topic that is gone")
}

// forget writes a tombstone for a published revision, as an operator would.
func forget(f *fixture, key string) {
	f.t.Helper()
	r := &kgo.Record{Topic: f.topic + PublishedSuffix, Key: []byte(key)}
	require.NoError(f.t, f.kafka.Client(f.t).ProduceSync(f.t.Context(), r).FirstErr())
}

func TestEachRevisionIsPublished(t *testing.T) {
	f := newFixture(t, testenv.Kafka(t), 3, "", 2)
	f.Fill(50)
	f.MakeFinal()
	p := f.publisher()
	require.NoError(t, p.Pass(t.Context()))
	before := f.Shown()
	f.Reopen()
	f.Fill(7)
	f.MakeFinal()
	require.NoError(t, p.Pass(t.Context()))
	require.Equal(t, before, f.published(1).rows)
	require.Equal(t, f.Shown(), f.published(2).rows)
}

// Redis went back to before the seal, or was lost, and the window was sealed again.
func TestWhatWasPublishedStaysOnceRedisHasGoneBack(t *testing.T) {
	for _, of := range []ledger.Shards{1, 3} {
		for _, same := range []bool{true, false} {
			for _, archived := range []bool{false, true} {
				t.Run(fmt.Sprint(of, same, archived), func(t *testing.T) {
					f := newFixture(t, testenv.Kafka(t), of, "", 2)
					f.Fill(50)
					f.MakeFinal()
					require.NoError(t, f.publisher().Pass(t.Context())) // the archive is added later
					before := f.Shown()
					c := f.config()
					archive := func(int64) {}
					if archived {
						c.Archive, archive = f.archived()
					}
					f.GoBack()
					if !same {
						f.Fill(3)
					}
					f.MakeFinal()
					archive(1)
					p := New(c)
					require.NoError(t, p.Pass(t.Context()))
					require.Equal(t, before, f.published(1).rows)
					due, err := f.Due(t.Context(), time.Now(), time.Now(), finaltest.Always, 0)
					require.NoError(t, err)
					if same {
						require.Empty(t, due)
						require.Zero(t, p.progress.Waiting)
						return
					}
					require.Len(t, due, 1)
					f.MakeFinal()
					archive(2)
					require.NoError(t, p.Pass(t.Context()))
					require.Equal(t, before, f.published(1).rows)
					require.Equal(t, f.Shown(), f.published(2).rows)
				})
			}
		}
	}
}

func TestAWindowThatChangesMeanwhileIsPublishedAnew(t *testing.T) {
	for name, change := range map[string]func(*fixture){
		"a member is hidden": func(f *fixture) { f.Hide(f.Shown()[2500].Member) },
		"it is reopened":     func(f *fixture) { f.Reopen() },
		"it is sealed again": func(f *fixture) { f.GoBack(); f.MakeFinal() },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, testenv.Kafka(t), 3, "", 1)
			f.Fill(5000)
			f.MakeFinal()
			c := f.config()
			done := false
			c.Report = func(is Progress) {
				if !done && is.Standings >= 2000 {
					done = true
					change(f)
				}
			}
			p := New(c)
			require.NoError(t, p.Pass(t.Context()))
			require.True(t, done)
			require.Zero(t, f.count(kgo.ReadCommitted()))
			if name == "it is reopened" {
				f.MakeFinal()
			}
			require.NoError(t, p.Pass(t.Context()))
			revision := int64(1)
			if name == "it is reopened" {
				revision = 2
			}
			require.Equal(t, f.Shown(), f.published(revision).rows)
		})
	}
}

// A leader is paused in the middle, and continues after the next leader has published the window.
func TestALeaderThatIsPausedInTheMiddleIsFenced(t *testing.T) {
	for _, before := range []string{"in its transaction", "before its commit"} {
		t.Run(before, func(t *testing.T) {
			f := newFixture(t, testenv.Kafka(t), 3, "", 3)
			f.Fill(5000)
			f.MakeFinal()
			c := f.config()
			at := int64(2000)
			if before == "before its commit" {
				at = 5000
			}
			paused := false
			c.Report = func(is Progress) {
				if !paused && is.Standings >= at {
					paused = true
					require.NoError(t, f.publisher().Pass(t.Context()))
				}
			}
			require.ErrorIs(t, New(c).Pass(t.Context()), ErrFenced)
			require.True(t, paused)
			require.Equal(t, f.Shown(), f.published(1).rows)
		})
	}
}

// A leader that was paused before it had its producer id fences the other one, and then knows what that one has
// published.
func TestALeaderThatIsPausedBeforeItBeginsPublishesNothingAgain(t *testing.T) {
	f := newFixture(t, testenv.Kafka(t), 1, "", 1)
	f.Fill(300)
	f.MakeFinal()
	c := f.config()
	c.Producer = func(options ...kgo.Opt) (*kgo.Client, error) {
		require.NoError(t, f.publisher().Pass(t.Context()))
		return f.producer(options...)
	}
	late := New(c)
	require.NoError(t, late.Pass(t.Context()))
	require.Equal(t, Progress{}, late.progress)
	require.Equal(t, f.Shown(), f.published(1).rows)
}

// A leader dies in the middle. Its records are in the log, but no consumer sees them.
func TestAnotherLeaderPublishesAllOfWhatOneHasBegun(t *testing.T) {
	f := newFixture(t, testenv.Kafka(t), 3, "", 2)
	f.Fill(5000)
	f.MakeFinal()
	var dead *kgo.Client
	c := f.config()
	c.Producer = func(options ...kgo.Opt) (*kgo.Client, error) {
		var err error
		dead, err = f.producer(options...)
		return dead, err
	}
	ctx, kill := context.WithCancel(t.Context())
	c.Report = func(is Progress) {
		if is.Standings == 3000 {
			require.NoError(t, dead.Flush(t.Context()))
			kill()
			dead.Close() // so that it cannot abort
		}
	}
	require.ErrorIs(t, New(c).Pass(ctx), context.Canceled)
	require.Zero(t, f.count(kgo.ReadCommitted()))
	require.NotZero(t, f.count(kgo.ReadUncommitted()))
	require.NoError(t, f.publisher().Pass(t.Context()))
	require.Equal(t, f.Shown(), f.published(1).rows)
	require.Greater(t, f.count(kgo.ReadUncommitted()), 5002)
}

func TestAWindowThatTakesTooLongLeavesTheOthersAndIsTriedAgainLater(t *testing.T) {
	f := newFixture(t, testenv.Kafka(t), 1, "", 1)
	f.Fill(2000)
	f.MakeFinal()
	c := f.config()
	c.Report = func(is Progress) {
		if is.Standings == 1000 {
			time.Sleep(1500 * time.Millisecond) // past nine tenths of the transaction's time
		}
	}
	p := New(c)
	p.timeouts = []time.Duration{100 * time.Hour, time.Second} // no broker allows the first
	err := p.Pass(t.Context())
	require.ErrorIs(t, err, ErrTooLong)
	require.ErrorContains(t, err, "2000 members: after 1s")
	require.ErrorContains(t, err, "transaction.max.timeout.ms")
	require.Zero(t, f.count(kgo.ReadCommitted()))
	require.Equal(t, 1, p.progress.Waiting)
	require.NoError(t, p.Pass(t.Context()), "not before an hour")
	require.Equal(t, 1, p.progress.Waiting)
	p.Report = func(Progress) {}
	p.later[f.Listed()] = time.Now()
	require.NoError(t, p.Pass(t.Context()))
	require.Equal(t, f.Shown(), f.published(1).rows)
}

// The broker is unavailable in the middle of a window: once for longer than the publisher waits, and once for a
// moment.
func TestABrokerThatIsAwayInTheMiddleDelaysAWindow(t *testing.T) {
	k := testenv.PrivateKafka(t, nil)
	for _, long := range []bool{true, false} {
		t.Run(fmt.Sprint(long), func(t *testing.T) {
			f := newFixture(t, k, 1, "", 2)
			f.Fill(5000)
			f.MakeFinal()
			c := f.config()
			done := false
			c.Report = func(is Progress) {
				if !done && is.Standings >= 2000 {
					done = true
					if k.Kill(); !long {
						k.Start()
					}
				}
			}
			p := New(c)
			p.stall = 3 * time.Second
			if !long {
				p.stall = time.Minute
			}
			err := p.Pass(t.Context())
			require.True(t, done)
			if long {
				require.ErrorIs(t, err, errStalled)
				require.Equal(t, 1, p.progress.Waiting)
				k.Start()
			} else if err != nil {
				t.Logf("it didn't survive the restart, which it may or may not: %v", err)
			}
			require.Eventually(t, func() bool { return p.Pass(t.Context()) == nil }, 60*time.Second, 100*time.Millisecond)
			require.Equal(t, f.Shown(), f.published(1).rows)
		})
	}
}

// deaf is a connection that breaks when the reply to a commit or an abort has arrived, before the client reads it.
type deaf struct {
	net.Conn
	ended atomic.Bool
}

func (d *deaf) Write(b []byte) (int, error) {
	const endTxn = 26
	if len(b) > 6 && binary.BigEndian.Uint16(b[4:]) == endTxn {
		d.ended.Store(true)
	}
	return d.Conn.Write(b)
}

func (d *deaf) Read(b []byte) (int, error) {
	n, err := d.Conn.Read(b)
	if d.ended.Load() && err == nil {
		_ = d.Close()
		return 0, io.ErrUnexpectedEOF
	}
	return n, err
}

// The commit succeeds, but its reply is lost.
func TestACommitWithoutAnAnswerIsFoundToBeDone(t *testing.T) {
	f := newFixture(t, testenv.Kafka(t), 1, "", 1)
	f.Fill(300)
	f.MakeFinal()
	c := f.config()
	c.Producer = func(options ...kgo.Opt) (*kgo.Client, error) {
		return f.producer(append(options, kgo.Dialer(func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, address)
			return &deaf{Conn: conn}, err
		}))...)
	}
	p := New(c)
	p.stall = 3 * time.Second
	require.Error(t, p.Pass(t.Context()))
	require.Zero(t, p.progress.Windows)
	require.Equal(t, 1, p.progress.Waiting)
	p.Producer = f.producer
	require.NoError(t, p.Pass(t.Context()))
	require.Equal(t, Progress{}, p.progress, "it is published, and not again")
	require.Equal(t, f.Shown(), f.published(1).rows)
}

func TestAWindowThatIsNotPublishedStaysInRedis(t *testing.T) {
	for _, final := range []bool{true, false} {
		t.Run(fmt.Sprint(final), func(t *testing.T) {
			f := newFixture(t, testenv.Kafka(t), 3, "", 1)
			f.Fill(50)
			if final {
				f.MakeFinal()
			}
			away := f.config()
			away.Producer = func(...kgo.Opt) (*kgo.Client, error) { return nil, errors.New("away") }
			p := New(away)
			was := f.Expires()
			require.Equal(t, final, p.Pass(t.Context()) != nil)
			require.Equal(t, was, f.Expires(), "there is time")
			soon := time.Now().Add(2 * time.Hour)
			f.Expire(soon)
			require.Equal(t, final, p.Pass(t.Context()) != nil)
			require.WithinDuration(t, time.Now().Add(14*24*time.Hour), f.Expires(), time.Minute)
			if final { // once published, it expires at its original time
				p = f.publisher()
				require.NoError(t, p.Pass(t.Context()))
				require.NoError(t, p.Pass(t.Context()))
				require.WithinDuration(t, soon, f.Expires(), time.Second)
				require.NoError(t, f.publisher().Pass(t.Context()), "another leader's")
				require.WithinDuration(t, soon, f.Expires(), time.Second)
			}
		})
	}
}
