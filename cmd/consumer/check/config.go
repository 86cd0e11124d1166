package check

// Check, of the configuration: what it comes to, and what an operator may not have
// meant. It is valid: else nothing is checked.

import (
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/standings/standings/cmd/consumer/config"
	"github.com/standings/standings/cmd/consumer/units"
)

// configFacts is what the configuration comes to.
type configFacts struct {
	settings []config.Setting
	layouts  []config.LayoutReport
	warnings []string
	kafka    tlsFacts
	redis    tlsFacts
}

// tlsFacts is how one side is connected to.
type tlsFacts struct {
	enabled    bool
	skipVerify bool
	// certificate is the one to show, nil for none.
	certificate *x509.Certificate
	err         error // of reading it again
}

func gatherConfig(l *config.Loaded) (configFacts, error) {
	layouts, warnings, err := l.Config.Layouts()
	if err != nil {
		return configFacts{}, err
	}
	return configFacts{
		settings: l.Settings, layouts: layouts, warnings: warnings,
		kafka: gatherTLS(&l.Config.Kafka.TLS), redis: gatherTLS(&l.Config.Redis.TLS),
	}, nil
}

func gatherTLS(c *config.TLS) tlsFacts {
	f := tlsFacts{enabled: c.Enabled, skipVerify: c.SkipVerify}
	if !c.Enabled || c.CertFile == "" {
		return f
	}
	pair, err := c.Pair()
	switch {
	case err != nil:
		f.err = err
	case pair.Leaf != nil:
		f.certificate = pair.Leaf
	default:
		f.certificate, f.err = x509.ParseCertificate(pair.Certificate[0])
	}
	return f
}

func judgeConfig(f configFacts, now time.Time) []finding {
	s := &section{name: sectionConfiguration}
	s.ok("settings", "", settingsFrom(f.settings))
	var cut []string
	for _, l := range f.layouts {
		cut = append(cut, fmt.Sprintf("%s %s, tick %s", l.Period, l.Layout, units.FormatDuration(time.Duration(l.TickMS)*time.Millisecond)))
	}
	if len(cut) > 0 {
		s.ok("layouts", "", strings.Join(cut, "; ")+fmt.Sprintf("; ±%s points", units.Thousands(f.layouts[0].MaxPoints)))
	}
	for _, w := range f.warnings {
		found, todo := splitRemedy(w)
		s.warn("settings", "", found, todo)
	}
	if secrets := secretsFrom(f.settings); secrets != "" {
		s.ok("secrets", "", secrets)
	}
	judgeTLS(s, "kafka", f.kafka, now)
	judgeTLS(s, "redis", f.redis, now)
	return s.all
}

// settingsFrom says where they come from: 3 of the file standings.yaml, 2 of the
// environment, all others by default.
func settingsFrom(all []config.Setting) string {
	n := map[string]int{}
	var order []string
	for _, s := range all {
		from := s.From.Layer
		switch from {
		case "file", "secret file":
			from = s.From.String()
		case "default":
			continue
		}
		if n[from]++; n[from] == 1 {
			order = append(order, from)
		}
	}
	text := "valid; all by default"
	for i, from := range order {
		if i == 0 {
			text = "valid; "
		} else {
			text += ", "
		}
		text += fmt.Sprintf("%d by %s", n[from], from)
	}
	return text
}

// secretsFrom says where each secret comes from, never what it is.
func secretsFrom(all []config.Setting) string {
	var said []string
	for _, s := range all {
		if s.Secret && s.Shown() != "" {
			said = append(said, s.Key+" by "+s.From.String())
		}
	}
	return strings.Join(said, "; ")
}

// splitRemedy takes a warning apart: what is, and what to do about it.
func splitRemedy(warning string) (found, todo string) {
	for _, between := range []string{"; ", ": "} {
		if i := strings.LastIndex(warning, between); i >= 0 {
			if rest := warning[i+len(between):]; slices.ContainsFunc([]string{"lower ", "raise ", "enable ", "set "}, func(verb string) bool { return strings.HasPrefix(rest, verb) }) {
				return warning[:i], rest
			}
		}
	}
	return warning, "set it otherwise, unless that is meant"
}

// certificateSoon is how long before its end a certificate is warned of.
const certificateSoon = 14 * units.Day

func judgeTLS(s *section, side string, f tlsFacts, now time.Time) {
	if !f.enabled {
		s.ok("tls", side, "off")
		return
	}
	if f.skipVerify && side == "redis" { // for Kafka it is among the warnings
		s.warn("tls", side, side+".tls.skip_verify is true: whoever sits between can read and change everything", "set "+side+".tls.ca_file instead")
	}
	c := f.certificate
	switch {
	case f.err != nil:
		if p, ok := errors.AsType[*config.TLSError](f.err); ok {
			s.wrong("tls", side, fmt.Sprintf("%s.tls.%v", side, p), "mend the file")
			return
		}
		s.wrong("tls", side, "the certificate isn't readable: "+f.err.Error(), "mend "+side+".tls.cert_file")
	case c == nil:
		s.ok("tls", side, "on, without a certificate of our own")
	case now.After(c.NotAfter):
		s.wrong("tls", side, fmt.Sprintf("the certificate for %q ended on %s", c.Subject.CommonName, c.NotAfter.UTC().Format(time.RFC3339)),
			"renew it; it is read anew for every connection")
	case now.Before(c.NotBefore):
		s.wrong("tls", side, fmt.Sprintf("the certificate for %q begins only on %s", c.Subject.CommonName, c.NotBefore.UTC().Format(time.RFC3339)),
			"look at this machine's clock, or have one that has begun")
	case c.NotAfter.Sub(now) < certificateSoon:
		s.warn("tls", side, fmt.Sprintf("the certificate for %q ends in %s", c.Subject.CommonName, units.ShortDuration(c.NotAfter.Sub(now))),
			"renew it; it is read anew for every connection")
	default:
		s.ok("tls", side, fmt.Sprintf("on; the certificate for %q is good until %s", c.Subject.CommonName, c.NotAfter.UTC().Format(time.DateOnly)))
	}
}
