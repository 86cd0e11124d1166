package kafkaconn

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"math/big"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"go.uber.org/goleak"

	"github.com/standings/standings/test/testenv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, testenv.LeakOptions()...) }

func fake(t *testing.T, options ...kfake.Opt) string {
	t.Helper()
	c, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1)}, options...)...)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c.ListenAddrs()[0]
}

// server listens, and calls each for every connection. All connections end with the test.
func server(t *testing.T, each func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var all sync.WaitGroup
	var mu sync.Mutex
	var open []net.Conn
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open = append(open, c)
			mu.Unlock()
			all.Go(func() { each(c); _ = c.Close() })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		mu.Lock()
		for _, c := range open {
			_ = c.Close()
		}
		mu.Unlock()
		all.Wait()
	})
	return l.Addr().String()
}

func hangs(c net.Conn)   { _, _ = io.Copy(io.Discard, c) }
func hangsUp(c net.Conn) { _, _ = c.Read(make([]byte, 1)) }

func user(t *testing.T, mechanism, password string) Settings {
	t.Helper()
	m, err := Mechanism(mechanism, "u", password)
	require.NoError(t, err)
	return Settings{SASL: m, User: "u", Timeout: time.Second}
}

// away is an address on which no process listens. It is below the ports that listeners get: a port that was
// free a moment ago may belong to another test.
const away = "127.0.0.1:1"

// sure repeats Diagnose until it returns a refusal or the time is over: on a machine that stalls, a late
// answer is not a refusal.
func sure(t *testing.T, w Settings, brokers ...string) error {
	t.Helper()
	for began := time.Now(); time.Since(began) < time.Minute; {
		if err := w.Diagnose(t.Context(), brokers...); err != nil {
			return err
		}
	}
	return nil
}

func TestWhoRefusesIsToldFromWhoIsAway(t *testing.T) {
	t.Parallel()
	for _, mechanism := range Mechanisms {
		asks := fake(t, kfake.EnableSASL(), kfake.Superuser(mechanism, "u", "right"))
		right, wrong := user(t, mechanism, "right"), user(t, mechanism, "hunter2")

		require.NoError(t, right.Diagnose(t.Context(), asks))
		require.NoError(t, right.Diagnose(t.Context(), away))
		require.NoError(t, wrong.Diagnose(t.Context(), away))
		require.NoError(t, wrong.Diagnose(t.Context(), server(t, hangsUp)))
		for _, brokers := range [][]string{{asks}, {away, asks}, {asks, away}, {server(t, hangsUp), asks}} {
			err := sure(t, wrong, brokers...)
			r, ok := errors.AsType[*Refusal](err)
			require.True(t, ok, "%v: %v", brokers, err)
			require.Equal(t, asks, r.Broker)
			// This broker closes the connection; end-to-end tests see the answer of a real one.
			require.Contains(t, err.Error(), "Kafka at "+asks+" hangs up on the user u, by "+mechanism)
			require.NotContains(t, err.Error(), "hunter2")
		}
	}
}

func TestOneBrokerThatLetsInIsEnoughAndEndsTheWait(t *testing.T) {
	t.Parallel()
	open := fake(t)
	asks := fake(t, kfake.EnableSASL(), kfake.Superuser("PLAIN", "u", "right"))
	hung := server(t, hangs)
	for tries := 1; ; tries++ { // the machine may stall once
		began := time.Now()
		require.NoError(t, Settings{}.Diagnose(t.Context(), asks, hung, open))
		took := time.Since(began)
		if took < patience-time.Second {
			return
		}
		require.Less(t, tries, 5, "it took %s", took)
	}
}

func TestABrokerThatHangsIsGivenUpAndRefusesNobody(t *testing.T) {
	t.Parallel()
	began := time.Now()
	require.NoError(t, user(t, "PLAIN", "p").Diagnose(t.Context(), server(t, hangs), server(t, hangs)))
	took := time.Since(began)
	require.Greater(t, took, patience-2*time.Second)
	require.Less(t, took, patience+30*time.Second)
}

func TestAMechanismThatIsNotOfferedNamesThoseThatAre(t *testing.T) {
	t.Parallel()
	asks := fake(t, kfake.EnableSASL(), kfake.Superuser("SCRAM-SHA-256", "u", "right"))
	require.ErrorContains(t, sure(t, Settings{}, asks), "asks who is there, and kafka.sasl.mechanism is none: it offers ")
}

// authority returns a self-signed certificate for 127.0.0.1 with a validity period.
func authority(t *testing.T, from, until time.Time) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "broker"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, NotBefore: from, NotAfter: until, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	leaf, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, pool
}

func TestWhatIsWrongWithTLSIsSaid(t *testing.T) {
	t.Parallel()
	now := time.Now()
	good, trusted := authority(t, now.Add(-time.Hour), now.Add(time.Hour))
	early, trustsEarly := authority(t, now.Add(time.Hour), now.Add(2*time.Hour))
	other, trustsOther := authority(t, now.Add(-time.Hour), now.Add(time.Hour))
	serves := func(c *tls.Config) string { return fake(t, kfake.TLS(c)) }
	shows := func(c tls.Certificate) *tls.Config {
		return &tls.Config{RootCAs: trusted, GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &c, nil }}
	}
	demands := func(version uint16) *tls.Config {
		return &tls.Config{Certificates: []tls.Certificate{good}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: trusted, MaxVersion: version}
	}
	plain := &tls.Config{Certificates: []tls.Certificate{good}}
	for name, c := range map[string]struct {
		server, client *tls.Config
		says           string
	}{
		"all is well":                  {plain, &tls.Config{RootCAs: trusted}, ""},
		"all is well, by certificates": {demands(tls.VersionTLS13), shows(good), ""},
		"unknown":                      {plain, &tls.Config{RootCAs: trustsOther}, "is signed by CN=broker, whom kafka.tls.ca_file doesn't hold"},
		"too early":                    {&tls.Config{Certificates: []tls.Certificate{early}}, &tls.Config{RootCAs: trustsEarly}, "is valid from " + early.Leaf.NotBefore.UTC().Format(time.RFC3339) + " on only"},
		"another name":                 {plain, &tls.Config{RootCAs: trusted, ServerName: "kafka.example.com"}, "is for 127.0.0.1, and not for kafka.example.com"},
		"none of ours, TLS 1.2":        {demands(tls.VersionTLS12), &tls.Config{RootCAs: trusted}, "asks for a client's certificate ("},
		"none of ours, TLS 1.3":        {demands(tls.VersionTLS13), &tls.Config{RootCAs: trusted}, "asks for a client's certificate ("},
		"a foreign one, TLS 1.2":       {demands(tls.VersionTLS12), shows(other), "refuses the client's certificate ("},
		"a foreign one, TLS 1.3":       {demands(tls.VersionTLS13), shows(other), "refuses the client's certificate ("},
		"no version in common":         {&tls.Config{Certificates: []tls.Certificate{good}, MaxVersion: tls.VersionTLS11}, &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12}, "refuses TLS: protocol version not supported"},
		"no TLS":                       {plain, nil, "speaks TLS on this port, and kafka.tls.enabled is false"},
	} {
		way, address := Settings{TLS: c.client}, serves(c.server)
		if c.says == "" {
			require.NoError(t, way.Diagnose(t.Context(), address), name)
			continue
		}
		err := sure(t, way, address)
		require.ErrorContains(t, err, c.says, name)
		require.NotContains(t, err.Error(), "\n", name)
		require.True(t, strings.HasPrefix(err.Error(), "Kafka at 127.0.0.1:"), name)
	}
	require.ErrorContains(t, sure(t, Settings{TLS: &tls.Config{RootCAs: trusted}}, fake(t)), "speaks without TLS on this port")
	require.NoError(t, Settings{TLS: &tls.Config{RootCAs: trusted}}.Diagnose(t.Context(), server(t, hangsUp)), "who hangs up may be starting")
}
