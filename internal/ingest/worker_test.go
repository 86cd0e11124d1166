package ingest

import (
	"testing"
)

func TestAWorkerCountsEveryEventOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.send(0, some("a", 300, 5)...)
	w.worker(0, nil)
	w.reaches(0)
	w.send(0, some("a", 200, -2)...)
	w.send(0, some("b", 10, 1)...)
	w.reaches(0)
}
