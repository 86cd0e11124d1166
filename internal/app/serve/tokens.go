package serve

// Invalid or unreadable token files. They are a warning; the process stays ready, because all other processes
// have the same file.

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/standings/standings/internal/api"
	v1 "github.com/standings/standings/internal/api/v1"
)

const tokensRemedy = "fix the file: until then clients are refused if it is missing or empty; otherwise the previous tokens stay valid"

// tokensFile is a configured file of tokens.
type tokensFile struct {
	setting string
	tokens  *v1.Tokens
	failed  error // the error that was last logged; only watchTokens uses it
}

// watchTokens checks the files, even without requests, and logs what has changed about them, until the context
// ends.
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

// Warnings returns problems of the token files, for /readyz.
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
