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
)

const hidden = "(hidden)"

// maySecret is a value that is shown in another form than it has.
type maySecret interface{ shown() string }

// addressesValue is a list of host:port. One with a user, a password or anything else of
// a URL isn't an address, and isn't shown: redis://user:password@host:6379.
type addressesValue struct{ listValue }

func (v addressesValue) shown() string { return HarmlessAddress(v.text()) }
func (v addressesValue) check() error {
	if v.shown() == v.text() {
		return v.listValue.check()
	}
	return errors.New("isn't a list of host:port: a user, a password and TLS are settings of their own")
}

// HarmlessAddress leaves out of an address, or a list of them, what may be a password: all
// up to the last @, and what a URL has behind the host. A password may hold a comma, a
// slash and an @, so nothing before the last of them is trusted.
func HarmlessAddress(text string) string {
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
type secretPathValue struct{ textValue }

func (v secretPathValue) shown() string {
	for _, begin := range []string{"/", "./", "../", "~"} {
		if strings.HasPrefix(v.text(), begin) && !strings.ContainsAny(v.text(), "\r\n") {
			return v.text()
		}
	}
	if v.text() == "" {
		return ""
	}
	return hidden
}

// pemPathValue is the path of a file with a certificate or a key, likewise.
type pemPathValue struct{ textValue }

func (v pemPathValue) shown() string {
	if strings.ContainsAny(v.text(), "\r\n") || strings.Contains(v.text(), "-----BEGIN") {
		return hidden
	}
	return v.text()
}

// withoutSecrets leaves out of what problems say the users and passwords of URLs, whatever
// the setting, and the secrets that are set: a password that is in another variable as well.
func (l *Loaded) withoutSecrets(problems []error) []error {
	for _, p := range problems {
		if e, ok := errors.AsType[*settingError](p); ok {
			e.found = withoutUser(e.found)
		}
	}
	for _, s := range l.Settings {
		secret := s.value.text()
		if !s.Secret || len(secret) < 4 { // a shorter one hides every message, and is none
			continue
		}
		for _, p := range problems {
			if e, ok := errors.AsType[*settingError](p); ok {
				e.key = strings.ReplaceAll(e.key, secret, hidden)
				e.found = strings.ReplaceAll(e.found, secret, hidden)
				e.problem = strings.ReplaceAll(e.problem, secret, hidden)
			}
		}
	}
	return problems
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
		return fmt.Errorf("%w: %s: %w", ErrInvalid, visible(path), pathErr.Err)
	}
	var found []string
	for text := range strings.SplitSeq(strings.TrimPrefix(err.Error(), "yaml: "), "\n") {
		if text = strings.TrimSpace(text); text != "" && text != "unmarshal errors:" {
			found = append(found, yamlProblem(path, text))
		}
	}
	return fmt.Errorf("%w: %s: %s", ErrInvalid, visible(path), strings.Join(found, "; "))
}

// yamlProblem is one of the parser's lines.
func yamlProblem(path, text string) string {
	line := ""
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		line, text = "line "+m[1]+": ", m[2]
	}
	switch anchor := yamlAnchor.FindStringSubmatch(text); {
	case anchor != nil:
		return lineOf(path, "*"+anchor[1]) + "a value that begins with * has to be in quotes"
	case strings.HasPrefix(text, "mapping key ") && strings.Contains(text, " already defined at line "):
		return line + "a name that is there before, on line " + text[strings.LastIndexByte(text, ' ')+1:]
	case strings.HasPrefix(text, "cannot unmarshal "):
		return line + "isn't a setting: want `name: value`"
	case text == "could not find expected ':'", !strings.ContainsAny(text, "'\"`"):
		return visible(line + text)
	}
	return line + "isn't YAML as it has to be; a value with special characters has to be in quotes"
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
