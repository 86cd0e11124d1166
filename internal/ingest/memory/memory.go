// Package memory has the memory budget that all partitions of a process share.
//
// Two rules prevent deadlocks:
//
//   - A worker that holds memory gets an immediate answer to a request. If the answer is no, it closes its
//     batch, has it swept, and releases everything.
//   - A worker that waits holds nothing. Waiters are served in order of arrival. Each gets a reserve as large
//     as the largest allowed batch, so that it can make progress whatever the others do. While any worker
//     waits, no other gets more memory, so the memory of the others returns batch by batch.
//
// Therefore every waiter is served, if each worker that holds memory releases it without waiting for more,
// within the time of a call or a batch. This holds for any number of accounts, because idle ones hold nothing.
package memory

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Budget is a number of bytes to share. It counts them; it does not allocate.
type Budget struct {
	mu      sync.Mutex // guards all fields except total and reserve (immutable), and the fields of every account
	total   int64
	used    int64 // held or reserved
	high    int64 // maximum of used so far
	reserve int64
	waiting []*waiter // in order of arrival
	served  time.Time // when a waiter was last served
}

type waiter struct{ turn chan struct{} }

// Queue is the state of the queue, as a waiter sees it.
type Queue struct {
	Waited  time.Duration // so far
	Still   time.Duration // the part of it since a waiter was last served
	Waiting int           // number of waiters, including this one
	Used    int64         // bytes
}

// New returns a budget of total bytes. A waiter gets reserve bytes when it is served.
func New(total, reserve int64) *Budget {
	if reserve <= 0 || reserve > total {
		panic(fmt.Sprintf("memory: a reserve of %d bytes in a budget of %d", reserve, total))
	}
	return &Budget{total: total, reserve: reserve}
}

// Reserve returns the bytes that a waiter gets, which is also the maximum for one batch.
func (b *Budget) Reserve() int64 { return b.reserve }

// Used returns the number of bytes held or reserved, for metrics.
func (b *Budget) Used() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

// Wanted reports whether any worker waits for memory.
func (b *Budget) Wanted() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.waiting) > 0
}

// Total returns the number of bytes to share.
func (b *Budget) Total() int64 { return b.total }

// High returns the maximum of Used so far.
func (b *Budget) High() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.high
}

// Waiting returns the number of waiters.
func (b *Budget) Waiting() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.waiting)
}

// use adds n to the bytes used.
func (b *Budget) use(n int64) {
	b.used += n
	b.high = max(b.high, b.used)
}

// Account is the memory of one partition. It is safe for concurrent use: two goroutines fold and sweep a
// partition's batches.
type Account struct {
	budget *Budget
	held   int64
	credit int64 // reserved and not held
	turn   bool  // has a reserve: released bytes become credit again
}

// Account opens an account that holds nothing.
func (b *Budget) Account() *Account { return &Account{budget: b} }

// Take requests n bytes and reports at once whether they are granted.
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

// Release returns n bytes: first to the account's reserve while it has one, the rest to the budget.
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

// lookEvery is how often a waiter sees the queue.
const lookEvery = 5 * time.Second

// Wait waits until the account gets a reserve. The caller must hold nothing, because two waiters that hold
// memory could wait for each other. During a long wait it calls see, if not nil, with the queue every few
// seconds.
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
	case <-w.turn: // usually at once
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

// EndTurn returns the rest of the reserve: the batch is closed.
func (a *Account) EndTurn() {
	b := a.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used -= a.credit
	a.credit, a.turn = 0, false
	b.serve()
}

// Held returns the number of bytes that the account holds.
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

// forget removes a waiter from the queue. It reports false if the waiter has been served.
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
