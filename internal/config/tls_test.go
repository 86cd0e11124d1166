package config

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// writePair writes a self-signed certificate and its key.
func writePair(t *testing.T, dir, name string) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key")
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "EC PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

func TestWhatIsWrongWithTLSIsNamed(t *testing.T) {
	cert, key := writePair(t, t.TempDir(), "a")
	_, other := writePair(t, t.TempDir(), "b")
	for _, c := range []struct{ yaml, key, says string }{
		{"{ca_file: " + cert + "}", "ca_file", "is set, but tls.enabled is false"},
		{"{enabled: true, ca_file: /nowhere.crt}", "ca_file", "can't be read: no such file or directory"},
		{"{enabled: true, ca_file: " + key + "}", "ca_file", "contains no PEM certificate"},
		{"{enabled: true, cert_file: " + cert + "}", "key_file", "is required with cert_file"},
		{"{enabled: true, key_file: " + key + "}", "cert_file", "is required with key_file"},
		{"{enabled: true, cert_file: " + cert + ", key_file: " + other + "}", "cert_file", "do not match"},
		{"{enabled: true, cert_file: " + cert + ", key_file: /nowhere.key}", "key_file", "can't be read"},
	} {
		for _, section := range []string{"kafka", "redis"} {
			refuses(t, section+": {tls: "+c.yaml+"}", section+".tls."+c.key, c.says)
		}
	}
}

func TestARenewedCertificateIsShownToTheNextConnection(t *testing.T) {
	dir := t.TempDir()
	cert, key := writePair(t, dir, "a")
	c := &TLS{Enabled: true, CAFile: cert, CertFile: cert, KeyFile: key}
	client, err := c.Client()
	if err != nil {
		t.Fatal(err)
	}
	shown := func() string {
		pair, err := client.GetClientCertificate(&tls.CertificateRequestInfo{})
		if err != nil {
			t.Fatal(err)
		}
		return string(pair.Certificate[0])
	}
	before := shown()
	if shown() != before {
		t.Error("the certificate changes by itself")
	}
	writePair(t, dir, "a")
	if shown() == before {
		t.Error("the old certificate is still shown")
	}
}
