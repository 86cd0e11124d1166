package main

// The configuration as the rest of the program reads it. What each setting is
// called, means and defaults to stands in options.go, once.

import (
	"time"

	"github.com/standings/standings/internal/ingest/event"
	"github.com/standings/standings/internal/periods"
)

type config struct {
	kafka   kafkaConfig
	redis   redisConfig
	periods []periodConfig // every period there is, in the order of periods.All

	start  string // window, earliest, latest, or an RFC 3339 time
	onGap  string // halt or continue
	boards []string

	timeZone  string
	weekStart string
	maxPoints int64

	fields        event.Paths
	maxEventBytes int64
	maxFuture     time.Duration
	lateness      time.Duration

	foldMemory int64 // bytes
	pieceTime  time.Duration

	listen string // host:port, or off

	logLevel        string
	logFormat       string
	shutdownTimeout time.Duration
}

type kafkaConfig struct {
	brokers        []string // host:port
	topics         []string
	group          string
	fetchBytes     int64
	fetchWait      time.Duration
	sessionTimeout time.Duration
	heartbeat      time.Duration
	timeout        time.Duration // of one call
	commitInterval time.Duration
	tls            tlsConfig
	sasl           saslConfig
}

type redisConfig struct {
	addresses        []string // host:port
	cluster          bool
	sentinel         sentinelConfig
	username         string
	password         string
	passwordFile     string
	db               int64
	prefix           string
	shards           int64
	timeout          time.Duration // of one call
	assumeNoeviction bool
	tls              tlsConfig
}

type sentinelConfig struct {
	master       string
	username     string
	password     string
	passwordFile string
}

type periodConfig struct {
	name      periods.Period
	enabled   bool
	layout    string // a codec.Kind
	retention time.Duration
}

// defaults is the configuration of someone who has set nothing.
func defaults() *config {
	cfg := &config{}
	for _, o := range options(cfg) {
		if err := o.value.set(o.def); err != nil {
			panic("default of " + o.key + " " + err.Error())
		}
	}
	return cfg
}

// startTime is the time that start names, if it names one.
func (c *config) startTime() (time.Time, bool) {
	t, err := time.Parse(time.RFC3339, c.start)
	return t, err == nil
}
