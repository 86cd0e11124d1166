package jobs

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/standings/standings/internal/retry"
)

// Job is a function that is run again and again, each time after the one before has returned.
type Job struct {
	Name string // one or two words, for the log and the metrics
	// Every is how long the job rests after a run.
	Every time.Duration
	// Run does what there is to do. next, if it isn't 0, replaces Every once. A run that fails is repeated after a
	// growing pause, from a second to Every, a minute at most. A *FencedError ends the leader's term.
	Run func(context.Context) (next time.Duration, err error)
	// Version, if given, is read once a second while the job rests. Another value than before the last run ends the
	// rest.
	Version func(context.Context) (int64, error)
}

const (
	// firstPause and longestPause are between two runs of a job that fails.
	firstPause, longestPause = time.Second, time.Minute
	// versionEvery is between two reads of a job's version.
	versionEvery = time.Second
	// failedEvery is how often it is logged that a job still fails.
	failedEvery = 10 * time.Minute
)

// Repeat runs jobs on this process, also if it doesn't lead, until the context ends and all have returned.
func Repeat(ctx context.Context, log *zap.Logger, list ...Job) {
	var running sync.WaitGroup
	for _, job := range list {
		running.Go(func() { _ = job.repeat(ctx, log, nil) }) // there is no term that an error could end
	}
	running.Wait()
}

// repeat runs the job until the context ends, or until it is fenced: then it returns the error.
func (j *Job) repeat(ctx context.Context, log *zap.Logger, report func(string, error)) error {
	pauses := retry.Policy{First: firstPause, Longest: max(firstPause, min(j.Every, longestPause))}.Start()
	var failed retry.LogLimit
	for ctx.Err() == nil {
		before := j.version(ctx)
		next, err := j.Run(ctx)
		if ctx.Err() != nil {
			break
		}
		if report != nil {
			report(j.Name, err)
		}
		if errors.As(err, new(*FencedError)) {
			return err
		}
		if err != nil {
			if failed.Due(failedEvery) {
				log.Warn("a job failed; it is repeated", zap.String("job", j.Name), zap.Error(err))
			}
			_ = pauses.Next(ctx) // the loop checks the context
			continue
		}
		failed.Reset()
		pauses.Reset()
		if next == 0 {
			next = j.Every
		}
		j.rest(ctx, next, before)
	}
	return nil //nolint:nilerr // the context has ended
}

// version returns the job's version, or -1 if it isn't known.
func (j *Job) version(ctx context.Context) int64 {
	if j.Version == nil {
		return -1
	}
	v, err := j.Version(ctx)
	if err != nil {
		return -1
	}
	return v
}

// rest waits for a time, or until the job's version differs from the one before.
func (j *Job) rest(ctx context.Context, d time.Duration, before int64) {
	for end := time.Now().Add(d); ; {
		left := time.Until(end)
		if j.Version != nil {
			left = min(left, versionEvery)
		}
		if left <= 0 || retry.Sleep(ctx, left) != nil {
			return
		}
		if now := j.version(ctx); now >= 0 && now != before {
			return
		}
	}
}
