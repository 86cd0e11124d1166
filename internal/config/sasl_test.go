package config

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestSASLSettingsThatDoNotGoTogetherSayWhatWouldBeRight(t *testing.T) {
	const secret = "hunter2\u0007" // a control character, which SCRAM cannot carry
	for name, c := range map[string]struct{ file, says string }{
		"mechanism without user":     {"{sasl: {mechanism: plain}}", "kafka.sasl.username: is required for kafka.sasl.mechanism plain"},
		"mechanism without password": {"{sasl: {mechanism: scram-sha-256, username: u}}", "kafka.sasl.password: is required for kafka.sasl.mechanism scram-sha-256: set it or kafka.sasl.password_file"},
		"user without mechanism":     {"{sasl: {username: u, password: hunter2}}", "kafka.sasl.mechanism: none is not a mechanism for a user and a password: use one of plain, scram-sha-256, scram-sha-512"},
		"password without mechanism": {"{sasl: {password: hunter2}}", "kafka.sasl.mechanism: none is not a mechanism for a user"},
		"another mechanism":          {"{sasl: {mechanism: gssapi}}", "kafka.sasl.mechanism: gssapi must be one of none, plain, scram-sha-256, scram-sha-512"},
		"a password with a bell":     {`{sasl: {mechanism: scram-sha-512, username: u, password: "hunter2\a"}}`, "kafka.sasl.username: u can't be used: the username or password holds characters that SCRAM can't carry"},
	} {
		_, err := Load(writeFile(t, "kafka: "+c.file), nil)
		if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && strings.Contains(err.Error(), secret[:7]) {
			t.Errorf("%s: the error shows the password: %v", name, err)
		}
	}
}

func TestWhatOthersCanReadIsWarnedOf(t *testing.T) {
	const inTheClear, trusting = "the password is sent in clear text", "kafka.tls.skip_verify is true: an attacker in between can read and change everything"
	for file, warning := range map[string]string{
		"{sasl: {mechanism: plain, username: u, password: p}}":                       inTheClear,
		"{tls: {enabled: true, skip_verify: true}}":                                  trusting,
		"{sasl: {mechanism: plain, username: u, password: p}, tls: {enabled: true}}": "",
		"{sasl: {mechanism: scram-sha-512, username: u, password: p}}":               "",
	} {
		l, err := Load(writeFile(t, "kafka: "+file), nil)
		if err != nil {
			t.Fatal(err)
		}
		_, warnings, err := l.Config.Layouts(time.Unix(1_793_577_600, 0))
		if err != nil {
			t.Fatal(err)
		}
		all := strings.Join(warnings, "\n")
		for _, w := range []string{inTheClear, trusting} {
			if strings.Contains(all, w) != (w == warning) {
				t.Errorf("%s: warned of %q", file, warnings)
			}
		}
	}
}
