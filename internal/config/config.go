// Package config is the configuration: what can be set, by a YAML file and by the
// environment, what holds by default, and what can't work. A setting is declared once,
// in options.go: its name, default, range and documentation come from there. Load is
// the way in; Config is what the rest of the program reads.
package config

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/standings/standings/internal/ingest/event"
	"github.com/standings/standings/internal/periods"
)

// Config is what is in force.
type Config struct {
	Kafka   Kafka
	Redis   Redis
	Periods []Period // the built-in ones in the order of periods.All, then those of one's own by name

	Start string // window, earliest, latest, or an RFC 3339 time
	OnGap string // halt or continue
	// Disorder is how far a record's time may lie before that of an earlier one; nil: no
	// word.
	Disorder *time.Duration
	Boards   []string // that events may name; none: any
	// Specs are the boards by name, where boards is a section.
	Specs []BoardSpec

	TimeZone  string
	WeekStart string
	MaxPoints int64
	// MaxWindows is how many windows may be listed.
	MaxWindows int64

	Fields        event.Paths
	Others        []event.Other // the fields that boards count besides
	MaxEventBytes int64
	MaxFuture     time.Duration
	Lateness      time.Duration
	Seal          bool

	// Duplicates is how many records an event is looked for that has the same ids; 0: repeats
	// count.
	Duplicates int64

	FoldMemory int64 // bytes

	Listen string // host:port, or off
	API    API

	Archive Archive

	LogLevel        string
	LogFormat       string
	ShutdownTimeout time.Duration
}

// Kafka is kafka.*: the brokers, the group, and how to talk to them.
type Kafka struct {
	Brokers        []string // host:port
	Topics         []string
	Group          string
	BansTopic      string // empty: nobody is banned
	FinalTopic     string // empty: final windows aren't published
	FetchBytes     int64
	SessionTimeout time.Duration
	Timeout        time.Duration // of one call
	TLS            TLS
	SASL           SASL
}

// Read are the topics that are read: those of events, and that of bans.
func (k *Kafka) Read() []string {
	all := slices.Clone(k.Topics)
	if k.BansTopic != "" {
		all = append(all, k.BansTopic)
	}
	return all
}

// PublishedTopic is where it is recorded which windows are published in FinalTopic; empty where none are.
func (k *Kafka) PublishedTopic() string {
	if k.FinalTopic == "" {
		return ""
	}
	return k.FinalTopic + publishedSuffix
}

// API is api.*: who reads the boards over HTTP, and how much of the process that takes.
type API struct {
	Listen     string // host:port, or off
	TokensFile string // empty: anyone may read
	// BansTokensFile has the tokens of those who may ban; empty: nobody bans by the API.
	BansTokensFile string
	Origins        []string
	Hosts          []string
	TrustedProxies []string // Proxies reads them
	Requests       int64
	Streams        int64
	Timeout        time.Duration
}

// Archive is archive.*: where final windows are kept for good, and backups of the others.
type Archive struct {
	URL      string // empty: nowhere
	URLFile  string
	Interval time.Duration // of backups; 0: none
}

// ArchiveInterval is the default of archive.interval: a night's.
const ArchiveInterval = 24 * time.Hour

// Redis is redis.*: one server, a cluster, or what Sentinels watch.
type Redis struct {
	Addresses        []string // host:port
	Cluster          bool
	Sentinel         Sentinel
	Username         string
	Password         string
	PasswordFile     string
	DB               int64
	Prefix           string
	Shards           int64
	Timeout          time.Duration // of one call
	AssumeNoeviction bool
	TLS              TLS
}

// Sentinel is redis.sentinel.*; without a master there are no Sentinels.
type Sentinel struct {
	Master       string
	Username     string
	Password     string
	PasswordFile string
}

// Period is one of periods.*.
type Period struct {
	Name      periods.Period
	Enabled   bool
	Layout    string // a codec.Kind
	Retention time.Duration
	Lateness  *time.Duration // nil: as of all
	Own       *OwnPeriod     // nil: it is built in
}

// Defaults is the configuration of someone who has set nothing.
func Defaults() *Config {
	cfg, _ := defaults()
	return cfg
}

// defaults also returns the options that are kept in it, with those of periods of one's own.
func defaults(own ...periods.Period) (*Config, []option) {
	cfg := &Config{}
	all := options(cfg, own...)
	for _, o := range all {
		if err := o.value.set(o.def); err != nil {
			panic("default of " + o.Key + " " + err.Error())
		}
	}
	return cfg, all
}

// Name is Redis in a line, as the configuration has it.
func (c *Redis) Name() string {
	at := strings.Join(c.Addresses, ", ")
	switch {
	case c.Sentinel.Master != "":
		return fmt.Sprintf("Redis %s of the Sentinels at %s", c.Sentinel.Master, at)
	case c.Cluster || len(c.Addresses) > 1:
		return "Redis Cluster at " + at
	}
	return "Redis at " + at
}
