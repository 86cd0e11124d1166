package serve

// Files of tokens that can't be read any more, or are wrong. It is a warning: the process is ready all
// the same, for every other process has the same file.

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/standings/standings/internal/api"
	v1 "github.com/standings/standings/internal/api/v1"
)

const tokensRemedy = "fix the file: until then clients are refused if it is missing or empty; otherwise the previous tokens stay valid"

// tokensFile is a file of tokens that are needed.
type tokensFile struct {
	setting string
	tokens  *v1.Tokens
	failed  error // as it was logged last; of watchTokens alone
}

// watchTokens looks at the files also while nobody asks, and logs what has changed about them,
// until the context ends.
func (p *Port) watchTokens(ctx context.Context, log *zap.Logger) {
	if len(p.files) == 0 {
		return
	}
	tick := time.NewTicker(v1.TokensEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		for _, f := range p.files {
			err := f.tokens.Look()
			switch {
			case err != nil && (f.failed == nil || f.failed.Error() != err.Error()):
				log.Warn("a file of tokens is missing, empty or wrong; "+tokensRemedy, zap.String("file", f.setting), zap.Error(err))
			case err == nil && f.failed != nil:
				log.Info("the file of tokens can be read again", zap.String("file", f.setting))
			}
			f.failed = err
			p.metrics.TokensRead(f.setting, err == nil)
		}
	}
}

// Warnings are what should be put right about the files, for /readyz.
func (p *Port) Warnings() []api.Reason {
	var all []api.Reason
	for _, f := range p.files {
		if err := f.tokens.Err(); err != nil {
			all = append(all, api.Reason{Reason: "tokens", What: f.setting + ": " + err.Error(),
				Remedy: tokensRemedy})
		}
	}
	return all
}
