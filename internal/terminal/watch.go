package terminal

// Repeated reading and display.

import (
	"context"
	"sync"
	"time"
)

// redrawEvery is how often the display is redrawn between looks: for the remaining time of a window, and for a
// resized terminal.
const redrawEvery = time.Second

// Watch calls look at once and then at each interval, and shows the results, until ctx ends, which is not an
// error, or show fails. Between results it calls show with nil and waited: how long the current look has run,
// or 0 if none is running. Looks never overlap, and one goroutine calls show. When Watch returns, all looks
// have ended.
func Watch[T any](ctx context.Context, every time.Duration, look func(context.Context) T, show func(found *T, waited time.Duration) error) error {
	ctx, cancel := context.WithCancel(ctx)
	var looks sync.WaitGroup
	defer looks.Wait()
	defer cancel()
	answers := make(chan T, 1)
	var begun time.Time // of the current look
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
				return nil // the look was interrupted
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
