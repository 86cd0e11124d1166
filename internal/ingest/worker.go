package ingest

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/segmentio/kafka-go"
	"go.uber.org/zap"

	"github.com/standings/standings/internal/ingest/connect"
	"github.com/standings/standings/internal/ingest/event"
	"github.com/standings/standings/internal/ingest/fetch"
	"github.com/standings/standings/internal/ingest/fold"
	"github.com/standings/standings/internal/ingest/memory"
	"github.com/standings/standings/internal/ledger"
)

// worker is one partition of one generation. Its run stays until the generation
// ends, whatever happens: a return would end the generation for every partition.
type worker struct {
	*Config
	*shared
	topic     string
	partition int
	field     string // <topic>/<partition>
	kafka     *broker
	commits   *commits
	log       *zap.Logger

	account *memory.Account
	batches *handoff
	decoder *event.Decoder
	letters *deadLetters
	letter  atomic.Pointer[letter] // one that couldn't be written; nil: all were
	quota   letterQuota
	done    lettered // the reader's
	refused lettered // the sweeper's: of members who are refused
	// The last flow ended for the token for reading a batch again.
	lostTurn bool
	pieces   fold.Pieces
	pace     pace

	until     *ledger.Position // where a replay ends; nil for a consumer, which doesn't
	stood     *ledger.Position // where the flow before left the ledger; nil: unknown
	trail     trail            // as far as it was swept, or further
	caughtUp  atomic.Bool      // the last answer of the broker was empty
	pastSince time.Time        // when the log was first seen to end before the position
	refill    atomic.Int64     // up to where a lost Redis is read again; 0 where it wasn't lost
	state     status
	lag       lag

	disorderSaid time.Time // the reader's: when a broken word was last told of
}

// shared is what the partitions of a process have in common.
type shared struct {
	memory      *memory.Budget
	maxResponse int64 // bytes: the largest response that is taken
	maxCodec    int64 // bytes: the most that a codec may hold
	states      *states
	starting    chan struct{} // a token for resolving where a topic's partitions start
	again       chan struct{} // a token for reading a batch again, outside of the budget
	turns       atomic.Int32  // how many wait for it
	reconnected atomic.Int64  // counts new connections to the standings
	trailless   atomic.Bool   // the brokers refuse metadata as long as a trail
	changed     chan struct{} // a token for whoever writes lines: a worker has halted, or goes on
	remakes     remakes
	remake      func(ctx context.Context, topic string) error // makes a dead-letter topic again that is gone
}

// run works until the generation ends.
func (w *worker) run(ctx context.Context) {
	w.log.Debug("partition assigned")
	defer w.log.Debug("partition released")
	wait := newWait()
	w.waiting(nil) // its first sign of life
	for ctx.Err() == nil {
		began := time.Now()
		err := w.flow(ctx)
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > 10*time.Second {
			wait.Reset()
		}
		if !w.settle(ctx, err, wait, time.Since(began)) {
			return
		}
	}
}

// settle does what the end of a flow asks for before the next one. It reports
// false where the generation has ended.
func (w *worker) settle(ctx context.Context, err error, wait *wait, took time.Duration) bool {
	if halt, ok := errors.AsType[*Halt](w.judge(err)); ok {
		pause := time.Second
		if again := w.halted(halt); again {
			// To look at its cause may be to read a sweep again: not all the time.
			pause = max(pause, min(took, 10*time.Second))
		}
		return sleep(ctx, pause) == nil
	}
	if errors.Is(err, errMoved) {
		w.movedAway(err)
		return sleep(ctx, 10*time.Millisecond) == nil // two that both think they own it mustn't spin
	}
	if errors.Is(err, errAgain) {
		w.log.Debug("looking at the ledger again", zap.Error(err))
	} else {
		w.waiting(err)
		if ofStandings(err) {
			w.Stats.Retries.Add(1)
		} else {
			w.Stats.KafkaTries.Add(1)
		}
	}
	return wait.next(ctx) == nil
}

// judge turns an error that won't pass by itself into a halt.
func (w *worker) judge(err error) error {
	if _, ok := errors.AsType[*Halt](err); ok || err == nil {
		return err
	}
	if _, ok := errors.AsType[kafka.Error](err); ok && Meaning(err) == ledger.Halt {
		return &Halt{HaltKafka, fmt.Sprintf("%s: %v", w.field, err), "see that this user may read the topic and its group, and that the broker is of version 2.3 or later"}
	}
	if w.Standings.Meaning(err) == ledger.Halt {
		return &Halt{HaltRedis, fmt.Sprintf("%s: %v", w.field, err), "mend what Redis names"}
	}
	return err
}

// flow finds the position and works from there until something ends it.
func (w *worker) flow(ctx context.Context) error {
	if err := w.awaitLostTurn(ctx); err != nil {
		return err
	}
	if err := w.tryLetter(ctx); err != nil {
		return err
	}
	at, err := w.locate(ctx)
	if err != nil {
		return err
	}
	return w.work(ctx, at)
}

// work reads and sweeps from a position on until something ends it.
func (w *worker) work(ctx context.Context, at ledger.Position) error {
	w.started(at)
	w.lag.goesOn(at.From)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	done := make(chan error, 1)
	// An account and batches of its own: what a call that was given up still
	// holds comes back to the account that it was taken from.
	w.account = w.memory.Account()
	w.batches = newHandoff(func() *batch {
		return &batch{Batch: fold.New(&w.Rules, w.account, w.memory.Reserve()-w.maxResponse)}
	})
	w.letters = w.newLetters(w.reading)
	w.letters.memory, w.letters.done, w.letters.wanted = w.account, &w.done, w.memory.Wanted
	w.done.begin(at.From)
	w.refused.refused = true
	r := &reader{worker: w, fetcher: w.fetcher(w.account), done: &w.done, blocked: w.reading, idle: newWait()}
	r.times.from(w.trail, at.From)
	r.times.disorder, r.times.broken, r.times.denied = w.disorder(), w.disordered, w.deniedTrail
	go func() {
		err := r.run(ctx, at)
		cancel(err) // the sweeper stops after the piece in flight
		done <- err
	}()
	sweeper := &sweeper{worker: w, at: at}
	swept := sweeper.run(ctx)
	w.stood = &sweeper.at
	cancel(swept)
	read := <-done
	if b := w.batches.open(); b != nil {
		w.batches.recycle(b)
	}
	w.account.EndTurn()
	// Whoever ended it first knows why; the other was cancelled with that cause.
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return errors.Join(swept, read)
}

func (w *worker) fetcher(m *memory.Account) *fetch.Fetcher {
	f := &fetch.Fetcher{
		Transport: w.kafka.client.Transport, Addr: w.kafka.client.Addr, ClientID: connect.ClientID, Topic: w.topic, Partition: w.partition,
		MaxWait: w.FetchWait, MaxBytes: int32(min(int64(w.FetchBytes), w.maxResponse/2)), MaxResponse: w.maxResponse,
	}
	if m != nil {
		f.Memory = m
	}
	return f
}

// partitions is the number of partitions of the topic.
func (w *worker) partitions(ctx context.Context) (int, error) {
	all, err := w.kafka.metadata(ctx, w.topic)
	if err != nil {
		return 0, err
	}
	n := all[w.topic]
	if n <= w.partition {
		return 0, fmt.Errorf("topic %s has %d partitions and this is partition %d", w.topic, n, w.partition)
	}
	return n, nil
}
