package main

import (
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
		l, err := (&program{environ: []string{"STANDINGS_REDIS_PASSWORD_FILE=" + path}}).configuration()
		if err != nil {
			t.Fatal(err)
		}
		if got := l.config.redis.password; got != want {
			t.Errorf("%q is read as %q, not %q", held, got, want)
		}
		if from := l.setting("redis.password").from.String(); from != "secret file "+path {
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
		l, err := (&program{configPath: writeConfig(t, c.file), environ: []string{c.variable}}).configuration()
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if got := l.config.redis.password; got != c.want {
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
		code, out, errs := execute(t, c.environ, "config")
		if code != exitUsage || !strings.Contains(errs, c.says) || !strings.Contains(errs, "redis.password_file: ") {
			t.Errorf("%s: exit code %d, %s", name, code, errs)
		}
		if strings.Contains(out+errs, secret) {
			t.Errorf("%s: the secret is shown: %s%s", name, out, errs)
		}
	}
}

func TestNoFormOfTheConfigurationShowsASecret(t *testing.T) {
	const secret = "hunter2"
	for _, args := range [][]string{{"config"}, {"config", "--json"}} {
		for _, variable := range []string{"STANDINGS_REDIS_PASSWORD=" + secret, "STANDINGS_REDIS_PASSWORD_FILE=" + writeSecret(t, secret)} {
			code, out, errs := execute(t, []string{variable}, args...)
			if code != exitOK || strings.Contains(out+errs, secret) || !strings.Contains(out, "(hidden)") {
				t.Errorf("%v with %s: exit code %d\n%s%s", args, variable, code, out, errs)
			}
		}
	}
}

func TestEverySecretHasAFile(t *testing.T) {
	keys := map[string]bool{}
	for _, o := range options(&config{}) {
		keys[o.key] = true
	}
	for _, o := range options(&config{}) {
		if o.secret && !keys[o.key+fileSuffix] {
			t.Errorf("%s can't come from a file", o.key)
		}
	}
}
