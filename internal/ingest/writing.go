package ingest

import (
	"sync"

	"github.com/standings/standings/internal/ingest/health"
)

// writing is what the shards of a sweeper wait for, as one.
type writing struct {
	note func(error)

	mu   sync.Mutex // guards errs, and is held over note, so that the latest is noted last
	errs []error
}

// of notes what a shard waits for, nil once it goes on.
func (w *writing) of(shard int, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.errs[shard] = err
	w.note(health.WaitsForShards(w.errs))
}
