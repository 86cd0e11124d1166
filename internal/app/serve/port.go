// Package serve has the API's port, which `consumer run` opens in addition to ingestion, and the implementation
// of `consumer serve`, which only serves the API: it scales separately, and needs only Redis.
package serve

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/standings/standings/internal/api"
	"github.com/standings/standings/internal/api/page"
	v1 "github.com/standings/standings/internal/api/v1"
	"github.com/standings/standings/internal/app"
	"github.com/standings/standings/internal/archive/store"
	"github.com/standings/standings/internal/bans"
	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/reading"
)

// connectionsFor is the maximum number of connections per concurrent request: most connections wait between two
// requests.
const connectionsFor = 16

// Port is the API's port. It is open until Close.
type Port struct {
	metrics *v1.Metrics
	reader  *reading.Reader // nil without a port
	files   []*tokensFile
	addr    net.Addr
	close   func()
}

// Open opens the port at api.listen, and serves it until Close. If api.listen is off, it opens no port and
// returns no error. If the port fails later, that is logged, and the process continues. desk receives bans,
// once it is set; if it is nil, this process accepts no bans.
func Open(ctx context.Context, cfg *config.Config, desk *atomic.Pointer[bans.Desk], log *zap.Logger) (*Port, error) {
	p := &Port{metrics: v1.NewMetrics(), close: func() {}}
	if cfg.API.Listen == config.Off {
		return p, nil
	}
	var tokens *v1.Tokens
	if cfg.API.TokensFile != "" {
		var err error
		if tokens, err = v1.OpenTokens(cfg.API.TokensFile); err != nil {
			return nil, errors.Join(errors.New("api.tokens_file"), err)
		}
		p.files = append(p.files, &tokensFile{"api.tokens_file", tokens, nil})
	}
	banning, err := openBans(cfg, desk)
	if err != nil {
		return nil, err
	}
	if banning.Tokens != nil {
		p.files = append(p.files, &tokensFile{"api.bans_tokens_file", banning.Tokens, nil})
	}
	r, err := app.OpenReader(ctx, cfg)
	if err != nil {
		return nil, err
	}
	r.Archive().Say(func(err error) { sayArchive(err, log) })
	r.Archive().Observe(p.metrics.ArchiveRead)
	if p.reader, err = app.NewReading(r); err != nil {
		r.Close()
		return nil, err
	}
	handler := v1.New(v1.Config{
		Reader: p.reader, Tokens: tokens, Bans: banning, Origins: cfg.API.Origins, TrustedProxies: cfg.API.Proxies(), Timeout: cfg.API.Timeout, Requests: int(cfg.API.Requests),
		Streams: int(cfg.API.Streams), Metrics: p.metrics, Log: log,
	})
	server, err := api.Open(ctx, api.Port{
		Name: "API's port", Setting: "api.listen", Listen: cfg.API.Listen, Handler: page.Handler(handler),
		Guarded: tokens == nil, Hosts: cfg.API.Hosts,
		Connections: connectionsFor*int(cfg.API.Requests) + int(cfg.API.Streams), EndWithin: cfg.ShutdownTimeout / 10, Log: log,
	})
	if err != nil {
		r.Close()
		return nil, err
	}
	p.addr = server.Addr()
	log.Info("API's port open", zap.Stringer("address", p.addr), zap.Bool("tokens", tokens != nil), zap.Bool("bans", banning.Off == ""))
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	running.Go(func() {
		if err := server.Run(serving); err != nil {
			log.Error("the API's port is closed; the process continues without it", zap.Error(err))
		}
	})
	running.Go(func() { p.watchTokens(serving, log) })
	running.Go(func() { p.reader.Follow(serving) })
	running.Go(func() { openArchive(serving, r.Archive(), cfg.API.Timeout) })
	p.close = func() {
		handler.EndStreams()
		stop()
		running.Wait()
		r.Close() // also what streams still read
		handler.Wait()
	}
	return p, nil
}

// openArchive opens the archive before the first request, so that the log reports at the start whether that
// works.
func openArchive(ctx context.Context, a *app.Archive, within time.Duration) {
	if a == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	_, _ = a.Open(ctx) // it has reported the error
}

// sayArchive logs that past windows cannot be read, or can be read again.
func sayArchive(err error, log *zap.Logger) {
	switch {
	case err == nil:
		log.Info("the archive can be read: past windows are served from it")
	case errors.Is(err, store.ErrEmpty):
		log.Info("the archive is empty: past windows are served from it once it has some")
	default:
		log.Warn("could not read the archive; windows in Redis are still served, and reads are retried", zap.Error(err))
	}
}

// openBans returns the tokens and the desk for bans through the API, or why bans are off.
func openBans(cfg *config.Config, desk *atomic.Pointer[bans.Desk]) (v1.Bans, error) {
	switch {
	case desk == nil:
		return v1.Bans{Off: "use consumer run with kafka.bans_topic and api.bans_tokens_file"}, nil
	case cfg.Kafka.BansTopic == "":
		return v1.Bans{Off: "kafka.bans_topic is not set"}, nil
	case cfg.API.BansTokensFile == "":
		return v1.Bans{Off: "api.bans_tokens_file is not set"}, nil
	}
	tokens, err := v1.OpenTokens(cfg.API.BansTokensFile)
	if err != nil {
		return v1.Bans{}, errors.Join(errors.New("api.bans_tokens_file"), err)
	}
	return v1.Bans{Tokens: tokens, Desk: desk.Load}, nil
}

// Addr returns the listening address; nil without a port.
func (p *Port) Addr() net.Addr { return p.addr }

// Close answers the requests in flight, and closes the port.
func (p *Port) Close() { p.close() }

// Describe sends the descriptions.
func (p *Port) Describe(to chan<- *prometheus.Desc) { p.metrics.Describe(to) }

// Collect sends the metrics, if there is a port.
func (p *Port) Collect(to chan<- prometheus.Metric) {
	if p.reader != nil {
		p.metrics.Collect(to)
	}
}

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
