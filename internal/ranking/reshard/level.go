package reshard

// The instant of the copy: the same events count on all shards, and no sweep is in progress.

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/retry"
)

// LevelError reports that the shards did not reach the same positions in time.
type LevelError struct {
	Waited time.Duration
	What   string
}

func (e *LevelError) Error() string {
	return fmt.Sprintf("after %v not all shards have the same events: %s. Consumers bring them there, a second or two after they see that a reshard is under way: "+
		"see that one runs for this partition, of a version that knows reshard (consumer status), and start it again", e.Waited.Round(time.Second), e.What)
}

// level waits until the shards are level, and holds them.
func (r *run) level(ctx context.Context) ([]ledger.State, error) {
	for began := time.Now(); ; {
		what, err := r.unlevel(ctx)
		if err != nil {
			return nil, err
		}
		if what == "" {
			states, busy, err := r.hold(ctx)
			if err != nil || states != nil {
				return states, err
			}
			what = busy
		}
		if waited := time.Since(began); waited > r.Level {
			return nil, &LevelError{waited, what}
		}
		if err := retry.Sleep(ctx, 100*time.Millisecond); err != nil {
			return nil, err
		}
	}
}

// unlevel describes a difference between the shards' positions, or returns "".
func (r *run) unlevel(ctx context.Context) (what string, err error) {
	states, err := r.states(ctx, r.from)
	if err != nil {
		return "", err
	}
	return unlevel(states, r.View.Schema)
}

// hold holds all shards, and returns their states if they are level. Otherwise it releases them and
// describes the reason.
func (r *run) hold(ctx context.Context) (states []ledger.State, what string, err error) {
	err = tries(ctx, func() error { return r.lease.hold(ctx, r.from) })
	busy, ok := errors.AsType[*BusyError](err)
	if err != nil && !ok {
		return nil, "", err
	}
	if ok {
		what = busy.Error()
	} else if states, err = r.states(ctx, r.from); err == nil {
		what, err = unlevel(states, r.View.Schema)
	}
	if err == nil && what == "" {
		return states, "", nil
	}
	return nil, what, errors.Join(ignoreBusy(err), r.lease.release(ctx, r.from))
}

func ignoreBusy(err error) error {
	if _, ok := errors.AsType[*BusyError](err); ok {
		return nil
	}
	return err
}

func (r *run) states(ctx context.Context, of []*ranking.Store) (states []ledger.State, err error) {
	err = tries(ctx, func() error {
		var errs []error
		states, errs = ranking.StateEach(ctx, of)
		for _, err := range errs {
			if err != nil {
				return err
			}
		}
		return nil
	})
	return states, err
}

// unlevel names a partition that is not at the same position on all shards, or is in mid-sweep, or returns "". A
// shard that is torn, lost or left is an error, since consumers cannot repair it.
func unlevel(states []ledger.State, schema string) (what string, err error) {
	fields := map[string]bool{}
	for i := range states {
		for field := range states[i].Ledger {
			fields[field] = true
		}
		if states[i].Schema != schema {
			return "", ranking.Faultf("shard %d of %d has another schema than it had, or none: consumer check says more", i, len(states))
		}
	}
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		first := states[0].Ledger[field]
		for i := range states {
			text := states[i].Ledger[field]
			at, err := ledger.Parse(text)
			switch {
			case strings.HasPrefix(text, ledger.TornMark):
				return "", ranking.Faultf("a piece of %s was written in part on shard %d: consumer rebuild settles it", field, i)
			case text == "":
				what = fmt.Sprintf("%s has no position on shard %d", field, i)
			case err != nil:
				return "", fmt.Errorf("%s on shard %d: %w", field, i, err)
			case at.Sweeping():
				what = fmt.Sprintf("%s is in the middle of a sweep on shard %d, at %s", field, i, text)
			case text != first:
				what = fmt.Sprintf("%s is at %s on shard 0, and at %s on shard %d", field, first, text, i)
			default:
				continue
			}
			return what, nil
		}
	}
	return "", nil
}
