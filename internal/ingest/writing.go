package ingest

import "sync"

// writing is what the shards of a sweeper wait for, as one: what the first of them does that
// waits for anything.
type writing struct {
	note func(error)

	mu   sync.Mutex
	errs []error
}

// of notes what a shard waits for, nil once it goes on.
func (w *writing) of(shard int, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.errs[shard] = err
	for _, err := range w.errs {
		if err != nil {
			w.note(err)
			return
		}
	}
	w.note(nil)
}
