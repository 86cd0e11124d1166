package security

// A Kafka with a listener for every way to secure one, and with users of different rights.

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/standings/standings/internal/embedded/child"
	"github.com/standings/standings/test/harness"
	"github.com/standings/standings/test/testenv"
)

// The passwords are distinctive, so that every output can be searched for them.
const (
	password      = "correct-horse-battery"
	wrongPassword = "wrong-horse-battery"
)

// Listeners in addition to the one without TLS and SASL, whose clients may do anything.
const (
	overTLS       = "OVERTLS"      // a certificate for 127.0.0.1
	mutual        = "MUTUAL"       // the same, and it requires the client's certificate
	expired       = "EXPIRED"      // a certificate that expired yesterday
	otherName     = "OTHERNAME"    // a certificate for other hosts
	withPassword  = "WITHPASSWORD" // TLS, and any SASL mechanism
	inTheClear    = "INTHECLEAR"   // SCRAM-SHA-512 without TLS
	plainInClear  = "PLAININCLEAR" // PLAIN without TLS
	elsewhere     = "ELSEWHERE"    // neither TLS nor SASL; it advertises the address of OVERTLS
	admin         = "admin"        // a user with all rights
	rotating      = "rotating"     // another such user
	limited       = "limited"      // a user with only the rights that a test grants
	clientName    = "standings"    // the name in the client's certificate, a user with all rights
	scramModule   = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
	plainModule   = `org.apache.kafka.common.security.plain.PlainLoginModule required user_admin="` + password + `";`
	authorizer    = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
	loopback      = "127.0.0.1"
	otherHosts    = "kafka-1.example.com, kafka.example.com"
	mutualSubject = "User:CN=" + clientName
)

// secured is that Kafka.
type secured struct {
	*testenv.KafkaServer
	ports   map[string]int
	ca      *harness.Authority
	foreign *harness.Authority // not trusted by the servers
	client  harness.Identity
	admin   *kadm.Client
}

func newSecured(t *testing.T) *secured {
	t.Helper()
	harness.Binary(t) // built now, while nothing waits for it
	s := &secured{ports: map[string]int{}, ca: harness.NewAuthority(t, "Test CA"), foreign: harness.NewAuthority(t, "Foreign CA")}
	tomorrow := time.Now().Add(24 * time.Hour)
	s.client = s.ca.Sign(t, clientName, tomorrow)
	good := s.ca.Sign(t, "broker", tomorrow, loopback)
	config := map[string]string{
		"authorizer.class.name":          authorizer,
		"super.users":                    "User:ANONYMOUS;User:" + admin + ";User:" + rotating + ";" + mutualSubject,
		"allow.everyone.if.no.acl.found": "false",
	}
	var listeners, protocols []string
	listen := func(name, protocol string, shown *harness.Identity, more map[string]string) {
		port, err := child.FreePort()
		if err != nil {
			t.Fatal(err)
		}
		s.ports[name] = port
		listeners = append(listeners, fmt.Sprintf("%s://%s:%d", name, loopback, port))
		protocols = append(protocols, name+":"+protocol)
		if shown != nil {
			more = merged(more, map[string]string{
				"ssl.keystore.type": "PEM", "ssl.keystore.location": shown.Both,
				"ssl.truststore.type": "PEM", "ssl.truststore.location": s.ca.File,
			})
		}
		for key, value := range more {
			config["listener.name."+strings.ToLower(name)+"."+key] = value
		}
	}
	yesterday, others := s.ca.Sign(t, "broker", time.Now().Add(-24*time.Hour), loopback), s.ca.Sign(t, "broker", tomorrow, strings.Split(otherHosts, ", ")...)
	listen(overTLS, "SSL", &good, nil)
	listen(mutual, "SSL", &good, map[string]string{"ssl.client.auth": "required"})
	listen(expired, "SSL", &yesterday, nil)
	listen(otherName, "SSL", &others, nil)
	listen(withPassword, "SASL_SSL", &good, map[string]string{
		"sasl.enabled.mechanisms":        "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
		"plain.sasl.jaas.config":         plainModule,
		"scram-sha-256.sasl.jaas.config": scramModule,
		"scram-sha-512.sasl.jaas.config": scramModule,
	})
	listen(inTheClear, "SASL_PLAINTEXT", nil, map[string]string{
		"sasl.enabled.mechanisms": "SCRAM-SHA-512", "scram-sha-512.sasl.jaas.config": scramModule,
	})
	listen(plainInClear, "SASL_PLAINTEXT", nil, map[string]string{
		"sasl.enabled.mechanisms": "PLAIN", "plain.sasl.jaas.config": plainModule,
	})
	listen(elsewhere, "PLAINTEXT", nil, nil)
	config["listeners"] = strings.Join(listeners, ",")
	config["advertised.listeners"] = strings.Replace(config["listeners"], s.at(elsewhere), s.at(overTLS), 1)
	config["listener.security.protocol.map"] = strings.Join(protocols, ",")
	s.KafkaServer = testenv.PrivateKafka(t, config)
	s.admin = kadm.NewClient(s.Client(t))
	for _, user := range []string{admin, rotating, limited} {
		s.setPassword(t, user, password)
	}
	return s
}

// setPassword sets a user's password for SCRAM.
func (s *secured) setPassword(t *testing.T, user, password string) {
	t.Helper()
	for _, mechanism := range []kadm.ScramMechanism{kadm.ScramSha256, kadm.ScramSha512} { // a request takes a user once
		altered, err := s.admin.AlterUserSCRAMs(t.Context(), nil, []kadm.UpsertSCRAM{
			{User: user, Mechanism: mechanism, Iterations: 4096, Password: password},
		})
		if err == nil {
			err = altered.Error()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func (s *secured) at(listener string) string {
	return fmt.Sprintf("%s:%d", loopback, s.ports[listener])
}

func merged(all ...map[string]string) map[string]string {
	sum := map[string]string{}
	for _, m := range all {
		maps.Copy(sum, m)
	}
	return sum
}
