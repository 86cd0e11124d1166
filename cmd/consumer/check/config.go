package check

// judgeConfig checks the configuration for settings that an operator may not have intended, and its
// certificates. The configuration is valid; otherwise check ends before this.

import (
	"crypto/x509"
	"fmt"
	"strings"
	"time"

	"github.com/standings/standings/internal/app"
	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/units"
	"github.com/standings/standings/internal/zoneinfo"
)

func judgeConfig(cfg *config.Config, now time.Time) ([]finding, error) {
	_, warnings, err := cfg.Layouts(time.Now())
	if err != nil {
		return nil, err
	}
	s := &section{name: sectionConfiguration}
	s.ok("settings", "", "valid; `consumer config` shows them, and where each comes from")
	for _, w := range warnings {
		last := strings.LastIndex(w, "; ")
		s.warn("settings", "", w[:last], w[last+len("; "):])
	}
	s.ok("time_zone_data", "", zoneinfo.Current().String())
	judgeTLS(s, "kafka", &cfg.Kafka.TLS, now)
	judgeTLS(s, "redis", &cfg.Redis.TLS, now)
	return s.all, nil
}

// judgeTLS checks the client certificate, if one is configured.
func judgeTLS(s *section, side string, c *config.TLS, now time.Time) {
	if !c.Enabled || c.CertFile == "" {
		return
	}
	if pair, err := c.Pair(); err != nil { // the file changed or was removed since the configuration was read
		s.wrong("tls", side, fmt.Sprintf("%s.tls.%v", side, err), "fix the file")
	} else {
		judgeCertificate(s, side, pair.Leaf, now)
	}
}

// certificateSoon is how long before a certificate expires check starts to warn.
const certificateSoon = 14 * units.Day

func judgeCertificate(s *section, side string, c *x509.Certificate, now time.Time) {
	const renew = "renew it; it is read for every connection"
	name := fmt.Sprintf("the certificate for %q ", c.Subject.CommonName)
	switch {
	case now.After(c.NotAfter):
		s.wrong("tls", side, name+"ended on "+c.NotAfter.UTC().Format(time.RFC3339), renew)
	case now.Before(c.NotBefore):
		s.wrong("tls", side, name+"begins only on "+c.NotBefore.UTC().Format(time.RFC3339), "look at this machine's clock, or have one that has begun")
	case c.NotAfter.Sub(now) < certificateSoon:
		s.warn("tls", side, name+"ends in "+units.ShortDuration(c.NotAfter.Sub(now)), renew)
	default:
		s.ok("tls", side, name+"is good until "+c.NotAfter.UTC().Format(time.DateOnly))
	}
}

// judgeDuplicates reports the memory that event.duplicates takes, if it is on.
func judgeDuplicates(cfg *config.Config, topics []topicFacts) []finding {
	if cfg.Duplicates == 0 {
		return nil
	}
	s, partitions := &section{name: sectionConfiguration}, 0
	for i := range topics {
		partitions += len(topics[i].partitions)
	}
	if err := app.CheckDuplicates(cfg, partitions); err != nil {
		s.wrong("event.duplicates", "", err.Error(), "lower it, or give this process more memory")
		return s.all
	}
	s.ok("event.duplicates", "", units.Thousands(cfg.Duplicates)+" records of "+units.Plural(int64(partitions), "partition")+" take "+units.ShortBytes(app.DuplicatesMemory(cfg, partitions)))
	return s.all
}
