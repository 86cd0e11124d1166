package security

// Connections to Kafka: valid configurations, invalid ones, and their error messages.

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/standings/standings/test/harness"
	"github.com/standings/standings/test/testenv"
)

// All subtests share one broker, since starting one takes seconds.
func TestAKafkaThatAsksWhoIsThere(t *testing.T) {
	s := newSecured(t)
	t.Run("every way that is set up so works", s.everyWayWorks)
	t.Run("what is wrong is said in one line", s.whatIsWrongIsSaid)
	t.Run("no output holds a password", s.noOutputHoldsAPassword)
	t.Run("rights", func(t *testing.T) {
		t.Run("with the least rights all works", s.theLeastRightsAreEnough)
		t.Run("without one of them nothing is begun", s.oneRightLessIsRefused)
		t.Run("to publish, Write is enough and needed", s.toPublishTakesWrite)
		t.Run("to read dead letters, Read is enough and needed", s.toReadDeadLettersTakesRead)
		t.Run("to see status, Describe is enough and needed", s.toSeeStatusTakesDescribe)
		t.Run("to heed bans, Read is enough and needed", s.toHeedBansTakesRead)
		t.Run("to ban, Read and Write are enough and needed", s.toBanTakesReadAndWrite)
		t.Run("to list bans, Read is enough and needed", s.toListBansTakesRead)
		t.Run("to publish final windows, Write, and Read of what is published, are enough and needed", s.toPublishFinalWindowsTakesWrite)
		t.Run("dead-letter topics are made by those who may", s.deadLetterTopicsAreMade)
		t.Run("a right that is taken away and given back", s.aRightComesAndGoes)
		t.Run("a group that is taken away", s.aGroupIsTakenAway)
	})
	t.Run("a broker that restarts is waited for, and a password that has changed ends it", s.restarts) // last: it stops the broker
}

// tlsSettings returns settings that trust the test's authority.
func (s *secured) tlsSettings(listener string) map[string]string {
	return map[string]string{"kafka.brokers": s.at(listener), "kafka.tls.enabled": "true", "kafka.tls.ca_file": s.ca.File}
}

func (s *secured) userSettings(listener, user, mechanism string) map[string]string {
	settings := map[string]string{"kafka.sasl.mechanism": mechanism, "kafka.sasl.username": user, "kafka.sasl.password": password}
	if listener == withPassword {
		return merged(s.tlsSettings(listener), settings)
	}
	return merged(settings, map[string]string{"kafka.brokers": s.at(listener)})
}

func shows(i harness.Identity) map[string]string {
	return map[string]string{"kafka.tls.cert_file": i.Cert, "kafka.tls.key_file": i.Key}
}

func (s *secured) place(t *testing.T, settings map[string]string) *harness.Place {
	t.Helper()
	return harness.New(t, harness.Options{Kafka: s.KafkaServer, Redis: testenv.Redis(t), Settings: settings})
}

// some returns a few events of a place, one of them bad.
func some() []*kgo.Record {
	return []*kgo.Record{
		harness.Record(0, `{"user_id":"a","points":5}`), harness.Record(0, `{"user_id":"b","points":"many"}`),
		harness.Record(0, `{"user_id":"c","points":7}`),
	}
}

func (s *secured) everyWayWorks(t *testing.T) {
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte(password+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	fromFile := s.userSettings(withPassword, admin, "scram-sha-512")
	delete(fromFile, "kafka.sasl.password")
	for name, settings := range map[string]map[string]string{
		"TLS":                                 s.tlsSettings(overTLS),
		"TLS, any certificate":                {"kafka.brokers": s.at(expired), "kafka.tls.enabled": "true", "kafka.tls.skip_verify": "true"},
		"TLS, a certificate for another name": merged(s.tlsSettings(otherName), map[string]string{"kafka.tls.server_name": "kafka.example.com"}),
		"mTLS":                                merged(s.tlsSettings(mutual), shows(s.client)),
		"PLAIN over TLS":                      s.userSettings(withPassword, admin, "plain"),
		"SCRAM-SHA-256 over TLS":              s.userSettings(withPassword, admin, "scram-sha-256"),
		"SCRAM-SHA-512 over TLS, from a file": merged(fromFile, map[string]string{"kafka.sasl.password_file": file}),
		"SCRAM-SHA-512 in the clear":          s.userSettings(inTheClear, admin, "scram-sha-512"),
		"PLAIN in the clear":                  s.userSettings(plainInClear, admin, "plain"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			place := s.place(t, settings)
			place.Publish(t, some()...)
			c := place.Start(t)
			place.AwaitCaughtUp(t, within)
			statusSeesAll(t, place)
			c.Terminate(t)
			place.Check(t)
			place.CheckCounts(t)
			if out := place.Command(t, "dead-letters", "export"); bytes.Count(out, []byte("\n")) != 1 || !bytes.Contains(out, []byte(`"value":{"user_id":"b","points":"many"}`)) {
				t.Errorf("the letters that are exported: %s", out)
			}
			other := s.Topic(t, 1, nil)
			if out := place.Command(t, "produce", "--topic", other, "--count", "3"); !strings.Contains(string(out), "published 3 events") {
				t.Errorf("produce says %s", out)
			}
			warned := strings.Contains(c.Log.Text(), "is sent in clear text")
			if warned != (name == "PLAIN in the clear") {
				t.Errorf("warned of a password in the clear: %t", warned)
			}
		})
	}
}

// statusSeesAll checks that status can read from Kafka.
func statusSeesAll(t *testing.T, place *harness.Place) {
	t.Helper()
	if out := string(place.Command(t, "status", "--json")); !strings.Contains(out, `"lag": 0`) || !strings.Contains(out, `"problems": []`) {
		t.Errorf("status doesn't see that all is read:\n%s", out)
	}
}

// mistake is a configuration that cannot work, and the required parts of the message.
type mistake struct {
	settings map[string]string
	says     []string
}

func (s *secured) mistakes(t *testing.T) map[string]mistake {
	t.Helper()
	wrong := map[string]string{"kafka.sasl.password": wrongPassword}
	foreign := s.foreign.Sign(t, clientName, time.Now().Add(time.Hour))
	late := s.ca.Sign(t, clientName, time.Now().Add(-time.Hour))
	return map[string]mistake{
		"a wrong password, PLAIN":         {merged(s.userSettings(withPassword, admin, "plain"), wrong), []string{"refuses the user admin or the password, by PLAIN"}},
		"a wrong password, SCRAM-SHA-256": {merged(s.userSettings(withPassword, admin, "scram-sha-256"), wrong), []string{"refuses the user admin or the password, by SCRAM-SHA-256"}},
		"a wrong password, SCRAM-SHA-512": {merged(s.userSettings(inTheClear, admin, "scram-sha-512"), wrong), []string{"refuses the user admin or the password, by SCRAM-SHA-512"}},
		"a user that nobody knows":        {s.userSettings(withPassword, "nobody", "scram-sha-512"), []string{"refuses the user nobody or the password"}},
		"a mechanism that isn't offered":  {s.userSettings(inTheClear, admin, "scram-sha-256"), []string{"doesn't offer SCRAM-SHA-256, but SCRAM-SHA-512", "kafka.sasl.mechanism"}},
		"a user where none is asked for":  {merged(s.tlsSettings(overTLS), map[string]string{"kafka.sasl.mechanism": "plain", "kafka.sasl.username": admin, "kafka.sasl.password": password}), []string{"takes no user on this port"}},
		"no user where one is asked for":  {s.tlsSettings(withPassword), []string{"asks who is there", "it offers", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"}},
		"no user, without TLS":            {map[string]string{"kafka.brokers": s.at(inTheClear)}, []string{"asks who is there", "it offers SCRAM-SHA-512"}},
		"no TLS where there is TLS":       {map[string]string{"kafka.brokers": s.at(overTLS)}, []string{"speaks TLS on this port, and kafka.tls.enabled is false"}},
		"no TLS where it asks for more":   {map[string]string{"kafka.brokers": s.at(mutual)}, []string{"speaks TLS on this port, and kafka.tls.enabled is false"}},
		"a password where there is TLS": {merged(s.userSettings(inTheClear, admin, "scram-sha-512"), map[string]string{"kafka.brokers": s.at(withPassword)}),
			[]string{"speaks TLS on this port, and kafka.tls.enabled is false"}},
		"an advertised address with TLS": {map[string]string{"kafka.brokers": s.at(elsewhere)},
			[]string{"Kafka at " + s.at(overTLS) + " speaks TLS on this port, and kafka.tls.enabled is false (the address is what the cluster advertises)"}},
		"TLS where there is none":             {merged(s.tlsSettings(overTLS), map[string]string{"kafka.brokers": s.Addr()}), []string{"speaks without TLS on this port, and kafka.tls.enabled is true"}},
		"TLS and a password where it's clear": {merged(s.userSettings(withPassword, admin, "scram-sha-512"), map[string]string{"kafka.brokers": s.at(inTheClear)}), []string{"speaks without TLS on this port"}},
		"an authority that isn't its":         {merged(s.tlsSettings(overTLS), map[string]string{"kafka.tls.ca_file": s.foreign.File}), []string{"signed by CN=Test CA, whom kafka.tls.ca_file doesn't hold"}},
		"the system's authorities":            {map[string]string{"kafka.brokers": s.at(overTLS), "kafka.tls.enabled": "true"}, []string{"signed by CN=Test CA, whom this system doesn't trust: set kafka.tls.ca_file"}},
		"a certificate of yesterday":          {s.tlsSettings(expired), []string{"shows a certificate that expired at 20"}},
		"a certificate for others":            {s.tlsSettings(otherName), []string{"is for " + otherHosts + ", and not for " + loopback, "kafka.tls.server_name"}},
		"no certificate of ours":              {s.tlsSettings(mutual), []string{"asks for a client's certificate", "set kafka.tls.cert_file and kafka.tls.key_file"}},
		"a foreign certificate of ours":       {merged(s.tlsSettings(mutual), shows(foreign)), []string{"refuses the client's certificate", "CN=" + clientName + ", issued by CN=Foreign CA"}},
		"a certificate of ours that is over":  {merged(s.tlsSettings(mutual), shows(late)), []string{"refuses the client's certificate", "issued by CN=Test CA, valid until 20"}},
	}
}

func (s *secured) whatIsWrongIsSaid(t *testing.T) {
	place := s.place(t, nil)
	for name, m := range s.mistakes(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			where := m.says
			if !strings.HasPrefix(where[0], "Kafka at ") {
				where = append([]string{"Kafka at " + m.settings["kafka.brokers"]}, where...)
			}
			refuses(t, place, m.settings, where, "run")
			refuses(t, place, m.settings, where, "status")
			refuses(t, place, m.settings, where, "produce", "--count", "1")
			code, out := place.Says(t, m.settings, "check", "--json")
			for _, says := range where {
				// check names the failed step, which replaces the note that the cluster advertises the address.
				if says, _, _ = strings.Cut(says, " (the address is"); code != 1 || !strings.Contains(out, says) {
					t.Errorf("check ends with code %d and doesn't say %q:\n%s", code, says, out)
				}
			}
		})
	}
}

func (s *secured) noOutputHoldsAPassword(t *testing.T) {
	place := s.place(t, nil)
	debug := map[string]string{"log.level": "debug"}
	for _, mechanism := range []string{"plain", "scram-sha-512"} {
		good := merged(s.userSettings(withPassword, admin, mechanism), debug)
		for _, settings := range []map[string]string{good, merged(good, map[string]string{"kafka.sasl.password": wrongPassword})} {
			for _, args := range [][]string{
				{"config"}, {"config", "--json"}, {"config", "--markdown"}, {"status"}, {"status", "--json"}, {"check"}, {"check", "--json"}, {"top", "global", "weekly"},
				{"rank", "global", "weekly", "a"}, {"produce", "--count", "1"}, {"run", "--no-such-flag"},
			} {
				_, out := place.Says(t, settings, args...)
				withoutPasswords(t, fmt.Sprint(args), out)
			}
		}
		c := place.Start(t, good)
		place.AwaitCaughtUp(t, within)
		c.Terminate(t)
		withoutPasswords(t, "run", c.Log.Text())
		_, out := place.Says(t, merged(good, map[string]string{"kafka.sasl.password": wrongPassword}), "run")
		withoutPasswords(t, "run", out)
	}
}

func withoutPasswords(t *testing.T, what, out string) {
	t.Helper()
	if out == "" {
		t.Errorf("%s writes nothing", what)
	}
	for _, secret := range []string{password, wrongPassword} {
		if strings.Contains(out, secret) {
			t.Errorf("%s shows the password:\n%s", what, out)
		}
	}
}

func (s *secured) restarts(t *testing.T) {
	settings := merged(s.userSettings(withPassword, rotating, "scram-sha-512"), map[string]string{
		"kafka.session_timeout": "3s", "kafka.timeout": "3s",
	})
	place := s.place(t, settings)
	place.Publish(t, some()...)
	running := place.Start(t)
	place.AwaitCaughtUp(t, within)
	s.Stop()
	starting := place.Start(t)
	starting.Log.Await(t, within, "waiting for Kafka")
	s.Start()
	place.Publish(t, some()...)
	starting.Log.Await(t, within, "generation began")
	place.AwaitCaughtUp(t, within)
	if !running.Running() || !starting.Running() {
		t.Error("a broker that restarted ended a consumer")
	}
	// Existing connections survive; new ones are refused.
	s.setPassword(t, rotating, wrongPassword)
	s.Stop()
	s.Start()
	for _, c := range []*harness.Consumer{running, starting} {
		if code := c.AwaitExit(t, within); code != 1 {
			t.Errorf("consumer %d ends with code %d", c.Number, code)
		}
		if reasons := harness.Reasons(c.Log.Text()); !strings.HasPrefix(strings.Join(reasons, "\n"), "join group "+place.Group+": Kafka at "+s.at(withPassword)+" refuses the user "+rotating+" or the password") {
			t.Errorf("consumer %d doesn't say why it ends:\n%s", c.Number, c.Log.Tail(5))
		}
	}
	place.Publish(t, some()...)
	place.Settings = maps.Clone(settings)
	place.Settings["kafka.sasl.password"] = wrongPassword // the correct password from now on
	c := place.Start(t)
	place.AwaitCaughtUp(t, within)
	c.Terminate(t)
	place.Check(t)
}
