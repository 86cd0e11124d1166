package config

// Secrets: their files, and messages without them. Operators write passwords in the wrong settings, and messages
// are logged.

import (
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"

	"github.com/standings/standings/internal/terminal"
	"github.com/standings/standings/internal/units"
)

const hidden = "(hidden)"

// addressesValue is a list of host:port. A text with a user, a password or other parts of a URL is not an
// address, and is not shown: redis://user:password@host:6379.
func addressesValue(p *[]string) value {
	v := listValue(p, 1, "host:port, …", checkAddress)
	each := v.check
	v.shown = func() string { return harmlessAddress(v.text()) }
	v.check = func() error {
		if v.shown() == v.text() {
			return each()
		}
		return errors.New("must be a list of host:port: user, password and TLS have their own settings")
	}
	return v
}

// harmlessAddress hides the parts of an address, or of a list of addresses, that may contain a password:
// everything up to the last @, and everything behind the host of a URL. A password may contain a comma, a slash
// and an @, so everything before the last @ is hidden.
func harmlessAddress(text string) string {
	if short := withoutUser(text); short != text {
		return short
	}
	return cutBehindHost(text, 0)
}

// withoutUser does this for a text that has a user or is a URL, and returns any other text unchanged.
func withoutUser(text string) string {
	if at := strings.LastIndexByte(text, '@'); at >= 0 {
		return cutBehindHost(hidden+text[at:], len(hidden))
	}
	if scheme := strings.Index(text, "://"); scheme >= 0 {
		return cutBehindHost(text, scheme+len("://"))
	}
	return text
}

func cutBehindHost(text string, host int) string {
	if end := strings.IndexAny(text[host:], "/?#"); end >= 0 {
		return text[:host+end] + hidden
	}
	return text
}

// secretPathValue is the path of a file with a secret. A value that does not start like a path may be the
// secret itself, and is not shown.
func secretPathValue(p *string) value {
	return pathValue(p, func(path string) bool {
		return strings.ContainsAny(path, "\r\n") || path != "" && !beginsAsPath.MatchString(path)
	})
}

var beginsAsPath = regexp.MustCompile(`^(/|\./|\.\./|~)`)

// pemPathValue is the path of a file with a certificate or a key. A value that contains PEM data is not shown.
func pemPathValue(p *string) value {
	return pathValue(p, func(path string) bool {
		return strings.ContainsAny(path, "\r\n") || strings.Contains(path, "-----BEGIN")
	})
}

func pathValue(p *string, maySecret func(string) bool) value {
	v := textValue(p, "a path", nil)
	v.shown = func() string {
		if maySecret(*p) {
			return hidden
		}
		return *p
	}
	return v
}

// withoutSecrets joins the problems. It hides in their messages the users and passwords of URLs, whatever the
// setting, and the values of all secrets, because a password may be in another variable as well. It returns nil
// for no problems.
func (l *Loaded) withoutSecrets(problems []*settingError) error {
	var secrets []string
	for _, s := range l.Settings {
		if text := s.value.text(); s.Secret && len(text) >= 4 { // a shorter one would hide every message
			secrets = append(secrets, text, hidden)
		}
	}
	hide, all := strings.NewReplacer(secrets...), make([]error, len(problems))
	for i, p := range problems {
		p.key, p.found, p.problem = hide.Replace(p.key), hide.Replace(withoutUser(p.found)), hide.Replace(p.problem)
		all[i] = p
	}
	return errors.Join(all...)
}

// quotedText matches text that the parser quotes.
var quotedText = regexp.MustCompile("['\"`].{2,}['\"`]")

// fileProblem returns a one-line error for a file that cannot be read or is not YAML: the parser's message without
// quoted text, because that comes from the file and may contain a password.
func fileProblem(path string, err error) error {
	if pathErr := (*os.PathError)(nil); errors.As(err, &pathErr) {
		return fmt.Errorf("%w: %s: %w", ErrInvalid, terminal.Harmless(path), pathErr.Err)
	}
	text := strings.TrimPrefix(strings.Join(strings.Fields(err.Error()), " "), "yaml: ")
	text = quotedText.ReplaceAllString(strings.TrimPrefix(text, "unmarshal errors: "), hidden)
	text = strings.ReplaceAll(text, "into map[string]interface {}", "as settings: use name: value")
	return fmt.Errorf("%w: %s: %s", ErrInvalid, terminal.Harmless(path), terminal.Harmless(text))
}

// plainHost reports whether a host has no other parts of a URL: SplitHostPort accepts password@host.
func plainHost(host string) bool { return !strings.ContainsAny(host, "@/?# \t") }

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
