package check

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"strings"
	"testing"
	"time"

	"github.com/standings/standings/cmd/consumer/config"
	"github.com/standings/standings/cmd/consumer/units"
)

func TestWhatCheckSaysOfTheConfiguration(t *testing.T) {
	until := func(d time.Duration) *x509.Certificate {
		return &x509.Certificate{Subject: pkix.Name{CommonName: "standings"}, NotBefore: checkedAt.Add(-units.Day), NotAfter: checkedAt.Add(d)}
	}
	for _, c := range []struct {
		name    string
		environ []string
		tls     tlsFacts
		check   string
		want    string
	}{
		{name: "defaults", check: "settings", want: "ok: valid; all by default"},
		{name: "environment", environ: []string{"STANDINGS_MAX_POINTS=99", "STANDINGS_LISTEN=off"}, check: "settings", want: "ok: valid; 2 by environment"},
		{name: "a coarse tick", environ: []string{"STANDINGS_MAX_POINTS=999999999999"}, check: "settings",
			want: "ok: …\nwarning: …tell apart only times…lower max_points, or set periods.weekly.layout to wide\nwarning: …monthly…\nwarning: …yearly"},
		{name: "any certificate", environ: []string{"STANDINGS_KAFKA_TLS_ENABLED=true", "STANDINGS_KAFKA_TLS_SKIP_VERIFY=true"}, check: "settings",
			want: "ok: …\nwarning: kafka.tls.skip_verify is true…→ set it otherwise"},
		{name: "layouts", check: "layouts", want: "ok: weekly readable, tick 10ms; monthly"},
		{name: "a secret", environ: []string{"STANDINGS_REDIS_PASSWORD=hidden"}, check: "secrets", want: "ok: redis.password by environment STANDINGS_REDIS_PASSWORD"},
		{name: "no TLS", check: "tls", want: "ok: off\nok: off"},
		{name: "TLS", tls: tlsFacts{enabled: true}, check: "tls", want: "ok: on, without a certificate of our own\nok: off"},
		{name: "a certificate", tls: tlsFacts{enabled: true, certificate: until(15 * units.Day)}, check: "tls", want: `ok: on; the certificate for "standings" is good until 2100-03-25…` + "\nok: off"},
		{name: "a certificate that ends", tls: tlsFacts{enabled: true, certificate: until(13 * units.Day)}, check: "tls", want: "warning: …ends in 13d0h → renew it…\nok: off"},
		{name: "a certificate that has ended", tls: tlsFacts{enabled: true, certificate: until(-time.Hour)}, check: "tls", want: "wrong: …ended on 2100-03-10T11:00:00Z → renew it…\nok: off"},
		{name: "a certificate that is gone", tls: tlsFacts{enabled: true, err: &config.TLSError{Setting: "cert_file", Problem: "can't be read"}}, check: "tls", want: "wrong: kafka.tls.cert_file can't be read…\nok: off"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, err := config.Load("", c.environ)
			if err != nil {
				t.Fatal(err)
			}
			f, err := gatherConfig(l)
			if err != nil {
				t.Fatal(err)
			}
			f.kafka = c.tls
			all := judgeConfig(f, checkedAt)
			holds(t, all, c.check, c.want)
			if strings.Contains(foundIn(all, "secrets"), "hidden") {
				t.Error("it shows a secret")
			}
		})
	}
}
