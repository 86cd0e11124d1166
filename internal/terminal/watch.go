package terminal

// Looking at something again and again.

import (
	"context"
	"sync"
	"time"
)

// redrawEvery is how often what is shown is drawn anew between looks: for the time that is left
// of a window, and for a terminal that is resized.
const redrawEvery = time.Second

// Watch looks at once and then every so often, and shows what was found, until ctx ends, which
// is no error, or show fails. Between looks show is called with nil; waited is then for how long
// the look under way has had no answer, 0 where none is. Looks never overlap, and show is called
// by one goroutine. When Watch returns, its looks have ended.
func Watch[T any](ctx context.Context, every time.Duration, look func(context.Context) T, show func(found *T, waited time.Duration) error) error {
	ctx, cancel := context.WithCancel(ctx)
	var looks sync.WaitGroup
	defer looks.Wait()
	defer cancel()
	answers := make(chan T, 1)
	var begun time.Time // of the look under way
	start := func() {
		begun = time.Now()
		looks.Go(func() { answers <- look(ctx) })
	}
	next, redraw := time.NewTicker(every), time.NewTicker(redrawEvery)
	defer next.Stop()
	defer redraw.Stop()
	start()
	for {
		var err error
		select {
		case found := <-answers:
			if begun = (time.Time{}); ctx.Err() != nil {
				return nil // what was found is that it was interrupted
			}
			err = show(&found, 0)
		case <-redraw.C:
			waited := time.Duration(0)
			if !begun.IsZero() {
				waited = time.Since(begun)
			}
			err = show(nil, waited)
		case <-next.C:
			if begun.IsZero() {
				start()
			}
		case <-ctx.Done():
			return nil
		}
		if err != nil {
			return err
		}
	}
}
