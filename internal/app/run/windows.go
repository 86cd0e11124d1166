package run

// A warning when max_windows is almost reached.

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/standings/standings/internal/api"
	"github.com/standings/standings/internal/jobs"
	"github.com/standings/standings/internal/ranking/boards"
)

const (
	fewWindowsLeft = "windows" // the reason of the warning
	// windowsWarned is the share of max_windows, in percent, from which on there is a warning.
	windowsWarned = 80
)

// windowRoom is the number of listed windows, on the shard that lists the most, and the limit. The number is 0
// until it is known.
type windowRoom struct {
	most   int64
	listed atomic.Int64
}

// countWindows returns the job that counts the windows. Every replica runs it, because each warns on its own
// port.
func countWindows(r *windowRoom, all *boards.Boards) jobs.Job {
	return look("count windows", countEvery, func() { r.listed.Store(0) }, func(ctx context.Context) (time.Duration, error) {
		n, err := all.Windows(ctx)
		if err == nil {
			r.listed.Store(n)
		}
		return 0, err
	})
}

func (r *windowRoom) warnings() []api.Reason {
	n := r.listed.Load()
	if n*100 < r.most*windowsWarned {
		return nil
	}
	what := fmt.Sprintf("%d windows are listed; max_windows is %d. From 90 %% on, events of boards without a window are refused", n, r.most)
	return []api.Reason{{Reason: fewWindowsLeft, What: what,
		Remedy: "set boards to the boards that events may name and drop the others (consumer drop --board), or raise max_windows"}}
}
