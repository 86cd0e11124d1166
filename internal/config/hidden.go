package config

// hidden replaces parts of messages: operators write passwords in the wrong settings, and messages are logged.

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"

	"github.com/standings/standings/internal/terminal"
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
