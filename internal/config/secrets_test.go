package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func writeSecret(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestASecretComesFromItsFileWithoutTheNewlineAtItsEnd(t *testing.T) {
	for held, want := range map[string]string{"hunter2": "hunter2", "hunter2\n": "hunter2", "hunter2\r\n": "hunter2", " a b \n\n": " a b \n"} {
		path := writeSecret(t, held)
		l, err := Load("", []string{"STANDINGS_REDIS_PASSWORD_FILE=" + path})
		if err != nil {
			t.Fatal(err)
		}
		if got := l.Config.Redis.Password; got != want {
			t.Errorf("%q is read as %q, not %q", held, got, want)
		}
		if from := l.setting("redis.password").From.String(); from != "secret file "+path {
			t.Errorf("the password comes from %q", from)
		}
	}
}

func TestOfASecretAndItsFileTheLaterLayerCounts(t *testing.T) {
	path := writeSecret(t, "of the file")
	for _, c := range []struct{ name, file, variable, want string }{
		{"a variable beats a file that the configuration names", "redis: {password_file: " + path + "}", "STANDINGS_REDIS_PASSWORD=of the variable", "of the variable"},
		{"a file that a variable names beats the configuration", "redis: {password: of the configuration}", "STANDINGS_REDIS_PASSWORD_FILE=" + path, "of the file"},
	} {
		l, err := Load(writeFile(t, c.file), []string{c.variable})
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if got := l.Config.Redis.Password; got != c.want {
			t.Errorf("%s: got %q", c.name, got)
		}
	}
}

func TestABadSecretFileIsNamedAndItsContentIsNot(t *testing.T) {
	const secret = "hunter2"
	long := writeSecret(t, strings.Repeat(secret, maxSecret))
	for name, c := range map[string]struct {
		environ []string
		says    string
	}{
		"missing":   {[]string{"STANDINGS_REDIS_PASSWORD_FILE=/nowhere/secret"}, "/nowhere/secret can't be read: no such file"},
		"directory": {[]string{"STANDINGS_REDIS_PASSWORD_FILE=" + t.TempDir()}, "can't be read: is a directory"},
		"empty":     {[]string{"STANDINGS_REDIS_PASSWORD_FILE=" + writeSecret(t, "\n")}, "is empty"},
		"too long":  {[]string{"STANDINGS_REDIS_PASSWORD_FILE=" + long}, "holds more than 64KiB"},
		"both":      {[]string{"STANDINGS_REDIS_PASSWORD_FILE=" + writeSecret(t, secret), "STANDINGS_REDIS_PASSWORD=" + secret}, "and redis.password are both set: set one of them"},
	} {
		_, err := Load("", c.environ)
		if !errors.Is(err, ErrInvalid) {
			t.Fatalf("%s: %v", name, err)
		}
		if said := err.Error(); !strings.Contains(said, c.says) || !strings.Contains(said, "redis.password_file: ") {
			t.Errorf("%s: %s", name, said)
		}
		if strings.Contains(err.Error(), secret) {
			t.Errorf("%s: the secret is shown: %v", name, err)
		}
	}
}

func TestEverySecretHasAFile(t *testing.T) {
	keys := map[string]bool{}
	for _, o := range options(&Config{}) {
		keys[o.Key] = true
	}
	for _, o := range options(&Config{}) {
		if o.Secret && !keys[o.Key+fileSuffix] {
			t.Errorf("%s can't come from a file", o.Key)
		}
	}
}

// If a password is in the wrong setting, no message contains it. In each case the input of Load contains the
// secret, or parts of it.
func TestNoMessageHoldsASecretThatIsInTheWrongPlace(t *testing.T) {
	const secret = "hunter2"
	pem := "-----BEGIN PRIVATE KEY-----\nhunter2\n-----END PRIVATE KEY-----"
	for name, c := range map[string]struct {
		file    string
		environ []string
		says    string
	}{
		"a URL for an address":         {"", []string{"STANDINGS_REDIS_ADDRESSES=redis://user:hunter2@cache:6379"}, "redis.addresses: (hidden)@cache:6379 must be a list of host:port: user, password and TLS have their own settings (environment STANDINGS_REDIS_ADDRESSES)"},
		"a user before the host":       {"", []string{"STANDINGS_REDIS_ADDRESSES=hunter2@cache:6379"}, "(hidden)@cache:6379 must be a list"},
		"a password with a comma":      {"", []string{"STANDINGS_REDIS_ADDRESSES=redis://user:hunter2,x/hunter2@y@cache:6379,other:6379"}, "(hidden)@cache:6379,other:6379 must be a list"},
		"in a list":                    {"redis: {addresses: ['a:1', 'redis://:hunter2@cache:6379']}", nil, "(hidden)@cache:6379 must be a list"},
		"in a list, with a comma":      {"redis: {addresses: ['redis://:hunter2,x@cache:6379']}", nil, "redis.addresses: (hidden) must be a list of names"},
		"for a broker":                 {"kafka: {brokers: 'sasl://user:hunter2@broker:9092'}", nil, "kafka.brokers: (hidden)@broker:9092 must be a list of host:port"},
		"for a topic":                  {"kafka: {topics: 'kafka://user:hunter2,2hunter2@broker/topic'}", nil, "kafka.topics: (hidden)@broker(hidden) has a value that is not a topic name"},
		"for the port":                 {"listen: 'http://user:hunter2@:8080'", nil, "listen: (hidden)@:8080 must be host:port"},
		"for a time":                   {"", []string{"STANDINGS_REDIS_TIMEOUT=redis://user:hunter2@cache"}, "redis.timeout: (hidden)@cache"},
		"for a section":                {"redis: redis://user:hunter2@cache", nil, "redis: is a value, but must be a section"},
		"a section":                    {"redis: {timeout: {a: hunter2}}", nil, "redis.timeout: is a section, but must be a duration"},
		"in another variable as well":  {"", []string{"STANDINGS_REDIS_PASSWORD=hunter2", "STANDINGS_REDIS_TIMEOUT=hunter2"}, "redis.timeout: \"(hidden)\" "},
		"in the file's variable":       {"", []string{"STANDINGS_REDIS_PASSWORD_FILE=hunter2"}, "redis.password_file: (hidden) can't be read: no such file"},
		"a key for its file":           {"", []string{"STANDINGS_KAFKA_TLS_ENABLED=true", "STANDINGS_KAFKA_TLS_CERT_FILE=/cert", "STANDINGS_KAFKA_TLS_KEY_FILE=" + pem, "STANDINGS_KAFKA_TLS_CA_FILE=" + pem}, "kafka.tls.ca_file: (hidden) can't be read"},
		"a password of the wrong type": {"redis: {password: [hunter2]}", nil, "redis.password: (hidden) is a list, but must be a text"},
		"an alias":                     {"kafka: {}\nredis:\n  username: me\n  password: *hunter2", nil, "standings.yaml: unknown anchor (hidden) referenced"},
		"no setting at all":            {"hunter2", nil, "line 1: cannot unmarshal !!str (hidden) as settings: use name: value"},
		"a list of settings":           {"- hunter2", nil, "line 1: cannot unmarshal !!seq as settings"},
		"a name twice":                 {"a: 1\nhunter2: 2\nhunter2: 3", nil, "line 3: mapping key (hidden) already defined at line 2"},
		"a tag":                        {"redis: {password: !!int hunter2}", nil, "cannot decode !!str (hidden) as a !!int"},
		"an anchor in itself":          {"redis: &hunter2 {a: *hunter2}", nil, "anchor (hidden) value contains itself"},
		"a quote that doesn't end":     {"redis:\n  password: \"hunter2\n", nil, "found unexpected end of stream"},
		"a name that is no text":       {"{[hunter2]: 1}", nil, "line 1: "},
	} {
		t.Run(name, func(t *testing.T) {
			path := ""
			if c.file != "" {
				path = writeFile(t, c.file)
			}
			_, err := Load(path, c.environ)
			if !errors.Is(err, ErrInvalid) {
				t.Fatalf("%v", err)
			}
			if said := err.Error(); !strings.Contains(said, c.says) {
				t.Errorf("%s\ndoesn't say\n%s", said, c.says)
			}
			if strings.Contains(err.Error(), secret) {
				t.Errorf("the secret is shown: %v", err)
			}
		})
	}
}
