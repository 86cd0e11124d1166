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
		"both":      {[]string{"STANDINGS_REDIS_PASSWORD_FILE=" + writeSecret(t, secret), "STANDINGS_REDIS_PASSWORD=" + secret}, "is set beside redis.password: set one of them"},
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
