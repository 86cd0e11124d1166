package config

// What a message leaves out of what it found: passwords are written where they don't
// belong, and a message goes to a log.

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"

	"github.com/standings/standings/internal/terminal"
)

const hidden = "(hidden)"

// addressesValue is a list of host:port. One with a user, a password or anything else of
// a URL isn't an address, and isn't shown: redis://user:password@host:6379.
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

// harmlessAddress leaves out of an address, or a list of them, what may be a password: all
// up to the last @, and what a URL has behind the host. A password may hold a comma, a
// slash and an @, so nothing before the last of them is trusted.
func harmlessAddress(text string) string {
	if short := withoutUser(text); short != text {
		return short
	}
	return cutBehindHost(text, 0)
}

// withoutUser does so with a text that has a user or is a URL, and leaves any other.
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

// secretPathValue is the path of a file with a secret. Who gave the secret itself isn't
// shown it: what doesn't begin as a path may be one.
func secretPathValue(p *string) value {
	return pathValue(p, func(path string) bool {
		return strings.ContainsAny(path, "\r\n") || path != "" && !beginsAsPath.MatchString(path)
	})
}

var beginsAsPath = regexp.MustCompile(`^(/|\./|\.\./|~)`)

// pemPathValue is the path of a file with a certificate or a key, likewise.
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

// withoutSecrets joins problems, and leaves out of what they say the users and passwords of
// URLs, whatever the setting, and the secrets that are set: a password that is in another
// variable as well. It is nil for no problems.
func (l *Loaded) withoutSecrets(problems []*settingError) error {
	var secrets []string
	for _, s := range l.Settings {
		if text := s.value.text(); s.Secret && len(text) >= 4 { // a shorter one hides every message, and is none
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

var (
	yamlLine   = regexp.MustCompile(`^line (\d+): (.*)`)
	yamlAnchor = regexp.MustCompile(`(?s)^unknown anchor '(.*)' referenced$`)
)

// fileProblem is one line for a file that can't be read or isn't YAML: which line it is,
// and what the parser says as long as that is its own words. What it quotes is the file's,
// a password for instance.
func fileProblem(path string, err error) error {
	if pathErr := (*os.PathError)(nil); errors.As(err, &pathErr) {
		return fmt.Errorf("%w: %s: %w", ErrInvalid, terminal.Harmless(path), pathErr.Err)
	}
	var found []string
	for text := range strings.SplitSeq(strings.TrimPrefix(err.Error(), "yaml: "), "\n") {
		if text = strings.TrimSpace(text); text != "" && text != "unmarshal errors:" {
			found = append(found, yamlProblem(path, text))
		}
	}
	return fmt.Errorf("%w: %s: %s", ErrInvalid, terminal.Harmless(path), strings.Join(found, "; "))
}

// yamlProblem is one of the parser's lines.
func yamlProblem(path, text string) string {
	line := ""
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		line, text = "line "+m[1]+": ", m[2]
	}
	switch anchor := yamlAnchor.FindStringSubmatch(text); {
	case anchor != nil:
		return lineOf(path, "*"+anchor[1]) + "quote values that begin with *"
	case strings.HasPrefix(text, "mapping key ") && strings.Contains(text, " already defined at line "):
		return line + "duplicate key (first on line " + text[strings.LastIndexByte(text, ' ')+1:] + ")"
	case strings.HasPrefix(text, "cannot unmarshal "):
		return line + "is not a setting: use `name: value`"
	case text == "could not find expected ':'", !strings.ContainsAny(text, "'\"`"):
		return terminal.Harmless(line + text)
	}
	return line + "is invalid YAML; quote values with special characters"
}

// lineOf is where a text first stands in a file: "line 3: "; empty if it isn't found.
func lineOf(path, text string) string {
	file, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	before, _, ok := strings.Cut(string(file), text)
	if !ok {
		return ""
	}
	return "line " + strconv.Itoa(1+strings.Count(before, "\n")) + ": "
}

// plainHost reports whether a host is no more than one: SplitHostPort takes password@host.
func plainHost(host string) bool { return !strings.ContainsAny(host, "@/?# \t") }
