package config

// Secrets from files: for each secret setting, another setting names a file that holds the secret, as Docker
// and Kubernetes mount them.

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/standings/standings/internal/units"
)

// fileSuffix turns a secret's key into the key of its file.
const fileSuffix = "_file"

// maxSecret is more than any password needs. A longer file is the wrong file.
const maxSecret = 64 << 10

// secretOptions declares a secret, stored in p, and the path of its file, stored in path.
func secretOptions(key string, p, path *string, doc string) []option {
	return []option{
		{Key: key, Secret: true, value: textValue(p, "", nil),
			doc: doc},
		{Key: key + fileSuffix, value: secretPathValue(path),
			doc: "File that contains `" + key + "`."},
	}
}

// readSecrets reads secrets from their files. If the secret itself is set too, the later layer takes
// precedence: the environment over the configuration file.
func (l *Loaded) readSecrets(layers []layer) {
	for i := range l.Settings {
		s := &l.Settings[i]
		if !s.Secret {
			continue
		}
		path := l.setting(s.Key + fileSuffix)
		if path.value.text() == "" {
			continue
		}
		complain := func(problem string) {
			l.problems = append(l.problems, &settingError{kind: errRange, key: path.Key, found: path.Shown(), problem: problem, from: path.From})
		}
		set, file := rank(layers, s.From), rank(layers, path.From)
		switch {
		case s.value.text() != "" && set > file:
			continue
		case s.value.text() != "" && set == file:
			complain("and " + s.Key + " are both set: set one of them")
			continue
		}
		text, err := readSecret(path.value.text())
		if err != nil {
			complain(err.Error())
			continue
		}
		s.From = Origin{"secret file", path.value.text()}
		_ = s.value.set(text) // any text is valid
	}
}

// rank returns the index of an origin's layer. The higher takes precedence.
func rank(layers []layer, of Origin) int {
	for i := range layers {
		if layers[i].name == of.Layer {
			return i
		}
	}
	return -1
}

func readSecret(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", unreadable(err)
	}
	defer f.Close() //nolint:errcheck // only read
	text, err := io.ReadAll(io.LimitReader(f, maxSecret+1))
	switch {
	case err != nil:
		return "", unreadable(err)
	case len(text) > maxSecret:
		return "", fmt.Errorf("holds more than %s, too much for a secret", units.FormatBytes(maxSecret))
	}
	secret := strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r")
	if secret == "" {
		return "", errors.New("is empty")
	}
	return secret, nil
}

// unreadable returns why a file cannot be read, without its path, which is shown anyway.
func unreadable(err error) error {
	if pathErr := (*os.PathError)(nil); errors.As(err, &pathErr) {
		err = pathErr.Err
	}
	return fmt.Errorf("can't be read: %w", err)
}
