// Package memory is the one budget that all partitions of a process share.
//
// Two rules keep it from ever locking up:
//
//   - Whoever asks while holding something is answered at once, yes or no. On a
//     no it closes its batch, has it swept and lets everything go.
//   - Whoever waits holds nothing. Waiters are served in the order they came,
//     each with a reserve as large as the largest batch allowed, so that it can
//     get something done whatever the others do. While anybody waits nobody
//     else gets more, so what the others hold comes back batch by batch.
//
// So a waiter is served if everybody who holds something gives it back without
// waiting for memory, and in the time that a call or a batch takes: for any number of
// accounts, as those that are idle hold nothing.
package memory

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Budget is a number of bytes to share. It counts; it does not allocate.
type Budget struct {
	mu      sync.Mutex // guards what is below but total and reserve, which stay, and every account's fields
	total   int64
	used    int64 // held or reserved
	high    int64 // the most that used has been
	reserve int64
	waiting []*waiter // first come, first served
	served  time.Time // when anybody was served last
}

type waiter struct{ turn chan struct{} }

// Queue is what a waiter sees of those who wait.
type Queue struct {
	Waited  time.Duration // so far
	Still   time.Duration // for how long of that nobody was served
	Waiting int           // it and all others
	Used    int64         // bytes
}

// New makes a budget of total bytes, of which a waiter gets reserve at its turn.
func New(total, reserve int64) *Budget {
	if reserve <= 0 || reserve > total {
		panic(fmt.Sprintf("memory: a reserve of %d bytes in a budget of %d", reserve, total))
	}
	return &Budget{total: total, reserve: reserve}
}

// Reserve is what a waiter gets, and so the most that one batch may use, in bytes.
func (b *Budget) Reserve() int64 { return b.reserve }

// Used is the number of bytes held or reserved, for metrics.
func (b *Budget) Used() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

// Wanted reports whether anybody waits for a turn.
func (b *Budget) Wanted() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.waiting) > 0
}

// Total is the number of bytes to share.
func (b *Budget) Total() int64 { return b.total }

// High is the most that Used has been.
func (b *Budget) High() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.high
}

// Waiting is how many wait for their turn.
func (b *Budget) Waiting() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.waiting)
}

// use changes what is used.
func (b *Budget) use(n int64) {
	b.used += n
	b.high = max(b.high, b.used)
}

// Account is what one partition holds. Its methods are safe for concurrent use:
// a partition's batches are folded and swept by two goroutines.
type Account struct {
	budget *Budget
	held   int64
	credit int64 // reserved and not held
	turn   bool  // on a reserve: what is released becomes credit again
}

// Account opens an account that holds nothing.
func (b *Budget) Account() *Account { return &Account{budget: b} }

// Take asks for n bytes and says at once whether they are granted.
func (a *Account) Take(n int64) bool {
	b := a.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	fromCredit := min(n, a.credit)
	rest := n - fromCredit
	if rest > 0 && (len(b.waiting) > 0 || b.used+rest > b.total) {
		return false
	}
	a.credit -= fromCredit
	b.use(rest)
	a.held += n
	return true
}

// Release gives n bytes back: to the account's reserve while it lasts, else to
// all.
func (a *Account) Release(n int64) {
	b := a.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	if n > a.held {
		panic(fmt.Sprintf("memory: %d bytes released of %d held", n, a.held))
	}
	a.held -= n
	if a.turn {
		kept := min(n, max(0, b.reserve-a.credit-a.held))
		a.credit += kept
		n -= kept
	}
	b.used -= n
	b.serve()
}

// lookEvery is how often a waiter is shown the queue.
const lookEvery = 5 * time.Second

// Wait waits for the account's turn at a reserve. The caller must hold nothing:
// two who wait while holding could wait for each other. A wait that goes on shows
// the queue to see every few seconds, if that isn't nil.
func (a *Account) Wait(ctx context.Context, see func(Queue)) error {
	b := a.budget
	b.mu.Lock()
	if a.held > 0 {
		b.mu.Unlock()
		panic(fmt.Sprintf("memory: a wait while holding %d bytes", a.held))
	}
	b.used -= a.credit
	a.credit, a.turn = 0, false
	w := &waiter{turn: make(chan struct{})}
	b.waiting = append(b.waiting, w)
	b.serve()
	b.mu.Unlock()

	if err := b.await(ctx, w, see); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	a.credit, a.turn = b.reserve, true
	return nil
}

func (b *Budget) await(ctx context.Context, w *waiter, see func(Queue)) error {
	select {
	case <-w.turn: // as a rule at once
		return nil
	default:
	}
	began := time.Now()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		select {
		case <-w.turn:
			return nil
		case <-ctx.Done():
			if b.forget(w) {
				return context.Cause(ctx)
			}
			<-w.turn // served in the meantime
			return nil
		case <-look.C:
			if see != nil {
				see(b.queue(began))
			}
		}
	}
}

func (b *Budget) queue(began time.Time) Queue {
	b.mu.Lock()
	defer b.mu.Unlock()
	q := Queue{Waited: time.Since(began), Waiting: len(b.waiting), Used: b.used}
	q.Still = min(q.Waited, time.Since(b.served))
	return q
}

// EndTurn gives up what is left of the reserve: the batch is closed.
func (a *Account) EndTurn() {
	b := a.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used -= a.credit
	a.credit, a.turn = 0, false
	b.serve()
}

// Held is the number of bytes that the account holds.
func (a *Account) Held() int64 {
	a.budget.mu.Lock()
	defer a.budget.mu.Unlock()
	return a.held
}

// serve gives the first waiters their reserves, as far as there is room.
func (b *Budget) serve() {
	for len(b.waiting) > 0 && b.used+b.reserve <= b.total {
		w := b.waiting[0]
		b.waiting = b.waiting[1:]
		b.use(b.reserve)
		b.served = time.Now()
		close(w.turn)
	}
}

// forget takes a waiter from the queue, and reports false if it has been served.
func (b *Budget) forget(w *waiter) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, other := range b.waiting {
		if other == w {
			b.waiting = append(b.waiting[:i], b.waiting[i+1:]...)
			b.serve()
			return true
		}
	}
	return false
}
