package check

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/units"
	"github.com/standings/standings/internal/zoneinfo"
)

func TestWhatCheckSaysOfTheConfiguration(t *testing.T) {
	for _, c := range []struct {
		name    string
		environ []string
		want    string
	}{
		{"defaults", nil, "ok: valid"},
		{"a coarse tick", []string{"STANDINGS_MAX_POINTS=999999999999"},
			"ok: …\nwarning: …have a resolution of… → lower max_points, or set periods.weekly.layout to wide\nwarning: …monthly…\nwarning: …yearly"},
		{"any certificate", []string{"STANDINGS_REDIS_TLS_ENABLED=true", "STANDINGS_REDIS_TLS_SKIP_VERIFY=true"},
			"ok: …\nwarning: redis.tls.skip_verify is true…→ set redis.tls.ca_file"},
		{"an open password", []string{"STANDINGS_KAFKA_SASL_MECHANISM=plain", "STANDINGS_KAFKA_SASL_USERNAME=u", "STANDINGS_KAFKA_SASL_PASSWORD=p"},
			"ok: …\nwarning: kafka.sasl.mechanism is plain… → enable TLS"},
		{"short retention", []string{"STANDINGS_PERIODS_WEEKLY_RETENTION=1h"},
			"ok: …\nwarning: weekly windows are removed 1h after their end… → raise periods.weekly.retention or lower lateness"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, err := config.Load("", c.environ)
			require.NoError(t, err)
			all, err := judgeConfig(l.Config, checkedAt)
			require.NoError(t, err)
			holds(t, all, "settings", c.want)
			holds(t, all, "time_zone_data", "ok: "+zoneinfo.Current().String())
		})
	}
}

func TestWhatCheckSaysOfACertificate(t *testing.T) {
	for left, want := range map[time.Duration]string{
		15 * units.Day: `ok: the certificate for "standings" is good until 2100-03-25`,
		13 * units.Day: "warning: …ends in 13d → renew it",
		-time.Hour:     "wrong: …ended on 2100-03-10T11:00:00Z → renew it",
	} {
		s := &section{name: sectionConfiguration}
		judgeCertificate(s, "kafka", &x509.Certificate{
			Subject: pkix.Name{CommonName: "standings"}, NotBefore: checkedAt.Add(-units.Day), NotAfter: checkedAt.Add(left),
		}, checkedAt)
		holds(t, s.all, "tls", want)
	}
	s := &section{name: sectionConfiguration}
	judgeTLS(s, "kafka", &config.TLS{Enabled: true, CertFile: "gone"}, checkedAt)
	holds(t, s.all, "tls", "wrong: kafka.tls.cert_file can't be read")
}

func TestTheMemoryOfDuplicatesIsReported(t *testing.T) {
	topics := []topicFacts{{partitions: make([]kafka.Partition, 3)}, {partitions: make([]kafka.Partition, 1)}}
	for records, want := range map[int64]string{0: "", 10_000: "ok: 10,000 records of 4 partitions take 937.5KiB"} {
		holds(t, judgeDuplicates(&config.Config{Duplicates: records}, topics), "event.duplicates", want)
	}
}
