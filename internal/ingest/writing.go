package ingest

import (
	"sync"

	"github.com/standings/standings/internal/ingest/health"
)

// writing combines the waits of a sweeper's shards into one.
type writing struct {
	note func(error)

	mu   sync.Mutex // guards errs, and is held during note, so that the latest wait is noted last
	errs []error
}

// of records what a shard waits for; nil once it continues.
func (w *writing) of(shard int, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.errs[shard] = err
	w.note(health.WaitsForShards(w.errs))
}
