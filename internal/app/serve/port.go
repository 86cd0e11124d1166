// Package serve is the API's port, which `consumer run` opens beside the ingestion, and what `consumer
// serve` runs, which has nothing else: readers scale apart, and need Redis alone.
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

// connectionsFor is how many connections there may be for each request that is answered at a time:
// most of them wait between two requests.
const connectionsFor = 16

// Port is the API's. It is open until Close.
type Port struct {
	metrics *v1.Metrics
	reader  *reading.Reader // nil where there is no port
	files   []*tokensFile
	addr    net.Addr
	close   func()
}

// Open opens the port where api.listen says, and serves it until Close; off is no port, and no
// error. One that breaks later is logged, and what is beside it goes on. Members are banned at the
// desk, once there is one; nil: not in this process.
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

// openArchive opens the archive before somebody asks for it, so that the log says at start whether
// that works.
func openArchive(ctx context.Context, a *app.Archive, within time.Duration) {
	if a == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	_, _ = a.Open(ctx) // it has said why
}

// sayArchive logs once that past windows can't be read, and that they can again.
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

// openBans says who bans by the API, or why nobody does.
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

// Addr is the address that is listened on; nil where there is no port.
func (p *Port) Addr() net.Addr { return p.addr }

// Close answers what is under way, and closes the port.
func (p *Port) Close() { p.close() }

// Describe names what is reported.
func (p *Port) Describe(to chan<- *prometheus.Desc) { p.metrics.Describe(to) }

// Collect reports it, where there is a port.
func (p *Port) Collect(to chan<- prometheus.Metric) {
	if p.reader != nil {
		p.metrics.Collect(to)
	}
}
