package config

// Loading the configuration: defaults, then the file, then the environment. Each
// is a layer of its own, so that where a value came from is never lost.

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/providers/file"
	"github.com/knadh/koanf/v2"
)

const (
	// Prefix begins the name of every variable.
	Prefix        = "STANDINGS_"
	FileVariable  = Prefix + "CONFIG" // names the file, as --config does
	testVariables = Prefix + "TEST_"  // what the tests are told; not ours to judge
)

// ofService is what Kubernetes sets in every pod of a namespace with a service
// whose name begins with standings. Nobody set these for us.
var ofService = regexp.MustCompile(`^` + Prefix + `([A-Z0-9_]+_)?(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT(_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)$`)

// Origin is where a value came from: a layer, and the file's path or the
// variable's name in it.
type Origin struct{ Layer, Name string }

// String is as `consumer config` shows it: environment STANDINGS_START.
func (o Origin) String() string {
	if o.Name == "" {
		return o.Layer
	}
	return o.Layer + " " + o.Name
}

// Setting is an option with where its value came from.
type Setting struct {
	option
	From Origin
}

// Shown is the value as it may be shown.
func (s Setting) Shown() string {
	text := s.value.text()
	if s.Secret && text != "" {
		return hidden
	}
	if m, ok := s.value.(maySecret); ok {
		return m.shown()
	}
	return text
}

// Loaded is a configuration with the origin of each of its settings, and what
// couldn't be read. It is good for nothing before validate says so, as Load does.
type Loaded struct {
	Config   *Config
	Settings []Setting
	problems []error
}

func (l *Loaded) setting(key string) Setting {
	return l.Settings[slices.IndexFunc(l.Settings, func(s Setting) bool { return s.Key == key })]
}

// Load loads the file at path, or the one that environ names, with environ over
// it, and validates. Its error holds every problem, one a line.
func Load(path string, environ []string) (*Loaded, error) {
	if path == "" {
		path = lookup(environ, FileVariable)
	}
	l, err := read(path, environ)
	if err != nil {
		return nil, err
	}
	return l, l.validate()
}

func lookup(environ []string, name string) string {
	for _, pair := range environ {
		if n, v, _ := strings.Cut(pair, "="); n == name {
			return v
		}
	}
	return ""
}

// layer is one source of values: the raw value and origin of each key it has.
type layer struct {
	name   string
	values *koanf.Koanf
	from   func(key string) Origin
}

// read reads the file at path (empty for none) and environ over the defaults.
// Unknown keys and values that can't be read are left to validate to tell.
func read(path string, environ []string) (*Loaded, error) {
	l := &Loaded{Config: Defaults()}
	declared := options(l.Config)
	layers, unknown, err := readLayers(declared, path, environ)
	if err != nil {
		return nil, err
	}
	l.problems = unknown
	for _, o := range declared {
		s := Setting{option: o}
		for _, layer := range layers {
			raw := layer.values.Get(o.Key)
			if raw == nil {
				continue
			}
			s.From = layer.from(o.Key)
			if err := assign(o, raw); err != nil {
				found := fmt.Sprintf("%q", fmt.Sprint(raw))
				if _, section := raw.(map[string]any); section {
					found = ""
				}
				if _, may := o.value.(maySecret); o.Secret || may {
					found = hidden
				}
				l.problems = append(l.problems, &settingError{kind: errType, key: o.Key, found: found, problem: err.Error(), from: s.From})
			}
		}
		l.Settings = append(l.Settings, s)
	}
	l.readSecrets(layers)
	return l, nil
}

func readLayers(declared []option, path string, environ []string) ([]layer, []error, error) {
	base, fromFile, fromEnv := koanf.New("."), koanf.New("."), koanf.New(".")
	keys := make(map[string]string)      // variable -> key
	variables := make(map[string]string) // key -> variable
	texts := make(map[string]any)
	for _, o := range declared {
		keys[o.Variable()], variables[o.Key] = o.Key, o.Variable()
		texts[o.Key] = o.def
	}
	if err := base.Load(confmap.Provider(texts, "."), nil); err != nil {
		return nil, nil, fmt.Errorf("read the defaults: %w", err)
	}
	if path != "" {
		if err := fromFile.Load(file.Provider(path), yaml.Parser()); err != nil {
			return nil, nil, fileProblem(path, err)
		}
	}
	lines := keyLines(path)
	where := func(key string) Origin {
		if line := lines[key]; line > 0 {
			return Origin{"file", fmt.Sprintf("%s, line %d", path, line)}
		}
		return Origin{"file", path}
	}
	problems := unknownKeys(declared, fromFile, where)
	problems = append(problems, unknownVariables(declared, keys, environ)...)
	set := env.Opt{
		Prefix:      Prefix,
		EnvironFunc: func() []string { return environ },
		TransformFunc: func(name, text string) (string, any) {
			if text == "" { // as good as not set: `${VAR:-}` in a compose file
				return "", nil
			}
			return keys[name], text
		},
	}
	if err := fromEnv.Load(env.Provider(".", set), nil); err != nil {
		return nil, nil, fmt.Errorf("read the environment: %w", err)
	}
	return []layer{
		{"default", base, func(string) Origin { return Origin{"default", ""} }},
		{"file", fromFile, func(string) Origin { return Origin{"file", path} }},
		{"environment", fromEnv, func(key string) Origin { return Origin{"environment", variables[key]} }},
	}, problems, nil
}

// assign puts a raw value, as YAML or the environment gave it, into an option.
func assign(o option, raw any) error {
	_, isList := o.value.(interface{ list() })
	switch v := raw.(type) {
	case map[string]any:
		return fmt.Errorf("is a section where a %s belongs", o.value.kind())
	case []any:
		if !isList {
			return fmt.Errorf("is a list where a %s belongs", o.value.kind())
		}
		items := make([]string, len(v))
		for i, item := range v {
			text, ok := scalar(item)
			if !ok || strings.Contains(text, ",") {
				return errors.New("isn't a list of plain names")
			}
			items[i] = text
		}
		return o.value.set(strings.Join(items, ","))
	}
	text, _ := scalar(raw)
	return o.value.set(strings.TrimSpace(text))
}

// scalar is the text of a YAML value that isn't a list or a section.
func scalar(raw any) (string, bool) {
	switch v := raw.(type) {
	case nil, map[string]any, []any:
		return "", false
	case time.Time: // YAML reads an unquoted date as a time
		return v.Format(time.RFC3339Nano), true
	}
	return fmt.Sprint(raw), true
}

func unknownKeys(declared []option, k *koanf.Koanf, from func(key string) Origin) []error {
	var problems []error
	for _, key := range k.Keys() {
		known, section := false, false
		for _, o := range declared {
			// Below a setting: that it got a section is told with the setting.
			known = known || o.Key == key || strings.HasPrefix(key, o.Key+".")
			section = section || strings.HasPrefix(o.Key, key+".")
		}
		raw := k.Get(key)
		empty := raw == nil
		if m, ok := raw.(map[string]any); ok {
			empty = len(m) == 0
		}
		switch {
		case known, section && empty: // `redis:` with all below it commented out
		case section:
			problems = append(problems, &settingError{kind: errType, key: key,
				problem: "a value stands where a section belongs", from: from(key)})
		default:
			names := make([]string, len(declared))
			for i, o := range declared {
				names[i] = o.Key
			}
			problems = append(problems, &settingError{kind: errUnknown, key: key,
				problem: "there is no such setting; the nearest is " + nearest(key, names), from: from(key)})
		}
	}
	return problems
}

func unknownVariables(declared []option, keys map[string]string, environ []string) []error {
	var problems []error
	for _, pair := range environ {
		name, _, _ := strings.Cut(pair, "=")
		if !strings.HasPrefix(name, Prefix) || name == FileVariable || strings.HasPrefix(name, testVariables) || ofService.MatchString(name) {
			continue
		}
		if _, known := keys[name]; known {
			continue
		}
		names := make([]string, len(declared))
		for i, o := range declared {
			names[i] = o.Variable()
		}
		problems = append(problems, &settingError{kind: errUnknown, key: name,
			problem: "there is no such setting; the nearest is " + nearest(name, names), from: Origin{"environment", ""}})
	}
	slices.SortFunc(problems, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return problems
}
