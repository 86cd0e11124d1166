package config

// Loading the configuration: defaults, then the file, then the environment. Each
// is a layer of its own, so that where a value came from is never lost.

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
)

const (
	// Prefix begins the name of every variable.
	Prefix        = "STANDINGS_"
	FileVariable  = Prefix + "CONFIG" // names the file, as --config does
	testVariables = Prefix + "TEST_"  // the tests' own; not checked here
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
	if s.value.shown != nil {
		return s.value.shown()
	}
	return text
}

// Loaded is a configuration with the origin of each of its settings, and what
// couldn't be read. It is good for nothing before validate says so, as Load does.
type Loaded struct {
	Config   *Config
	Settings []Setting
	problems []*settingError
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
	values map[string]any
	from   func(key string) Origin
}

// read reads the file at path (empty for none) and environ over the defaults.
// Unknown keys and values that can't be read are left to validate to tell.
func read(path string, environ []string) (*Loaded, error) {
	inFile, lines, err := readFile(path)
	if err != nil {
		return nil, err
	}
	cfg, declared := defaults(ownPeriods(inFile, environ, variables(options(&Config{})))...)
	boards := inFile["boards"]
	if text := lookup(environ, option{Key: "boards"}.Variable()); text != "" {
		boards = text
	}
	last := slices.IndexFunc(declared, func(o option) bool { return o.Key == "event.fields.event_id" })
	declared = slices.Insert(declared, last+1, otherOptions(cfg, otherFields(boards))...)
	layers, unknown := readLayers(declared, path, inFile, lines, environ)
	l := &Loaded{Config: cfg, problems: unknown}
	for _, o := range declared {
		s := Setting{option: o, From: Origin{Layer: "default"}}
		for _, layer := range layers {
			raw := layer.values[o.Key]
			if raw == nil {
				continue
			}
			s.From = layer.from(o.Key)
			if err := assign(o, raw); err != nil {
				found := fmt.Sprintf("%q", fmt.Sprint(raw))
				if _, section := raw.(map[string]any); section {
					found = ""
				}
				if o.Secret || o.value.shown != nil {
					found = hidden
				}
				l.problems = append(l.problems, &settingError{kind: errType, key: o.Key, found: found, problem: err.Error(), from: s.From})
			}
		}
		l.Settings = append(l.Settings, s)
	}
	l.readSecrets(layers)
	cfg.complete()
	return l, nil
}

// readLayers reads what is over the defaults, the later the higher.
func readLayers(declared []option, path string, inFile map[string]any, lines map[string]int, environ []string) ([]layer, []*settingError) {
	problems := unknownKeys(declared, inFile, func(key string) Origin {
		return Origin{"file", fmt.Sprintf("%s, line %d", path, lines[key])}
	})
	inEnvironment, unknown := readEnvironment(declared, environ)
	return []layer{
		{"file", inFile, func(string) Origin { return Origin{"file", path} }},
		{"environment", inEnvironment, func(key string) Origin { return Origin{"environment", option{Key: key}.Variable()} }},
	}, append(problems, unknown...)
}

// assign puts a raw value, as YAML or the environment gave it, into an option.
func assign(o option, raw any) error {
	switch v := raw.(type) {
	case map[string]any:
		if o.value.section != nil {
			return o.value.section(v)
		}
		return fmt.Errorf("is a section, but must be a %s", o.value.kind)
	case []any:
		if !o.value.list {
			return fmt.Errorf("is a list, but must be a %s", o.value.kind)
		}
		items := make([]string, len(v))
		for i, item := range v {
			text, ok := scalar(item)
			if !ok || strings.Contains(text, ",") {
				return errors.New("must be a list of names")
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

// isBuiltIn reports whether a key would change which windows a built-in period has.
func isBuiltIn(key string) bool {
	name, setting := ownSetting(key)
	return name.Length() != 0 && slices.Contains(windowSettings, setting)
}

// ofNoPeriod reports whether a key makes a period of one's own, but for what decides its windows.
func ofNoPeriod(key string) bool {
	if name, section := strings.CutPrefix(key, "periods."); section && !strings.Contains(name, ".") {
		return true
	}
	name, setting := ownSetting(key)
	return name != "" && slices.Contains(windowSettings, setting)
}

func unknownKeys(declared []option, values map[string]any, from func(key string) Origin) []*settingError {
	names := make([]string, len(declared))
	for i, o := range declared {
		names[i] = o.Key
	}
	var problems []*settingError
	for _, key := range slices.Sorted(maps.Keys(values)) {
		below, isSection := values[key].(map[string]any)
		empty := values[key] == nil || isSection && len(below) == 0
		switch {
		case isSection && !empty: // its keys are here, too
		// Below a setting: that it got a section is reported with the setting.
		case slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(key+".", name+".") }):
		case isBuiltIn(key):
			problems = append(problems, &settingError{kind: errUnknown, key: key,
				problem: "a built-in period follows time_zone and week_start; define a period with another name", from: from(key)})
		case ofNoPeriod(key):
			problems = append(problems, &settingError{kind: errUnknown, key: key,
				problem: "unknown period; to define one, give " + kindsText, from: from(key)})
		case !slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, key+".") }):
			problems = append(problems, &settingError{kind: errUnknown, key: key,
				problem: "unknown setting; did you mean " + nearest(key, names) + "?", from: from(key)})
		case !empty: // `redis:` with all below it commented out is
			problems = append(problems, &settingError{kind: errType, key: key,
				problem: "is a value, but must be a section", from: from(key)})
		}
	}
	return problems
}

// variables are the keys of settings by their names in the environment.
func variables(declared []option) map[string]string {
	keys := make(map[string]string, len(declared))
	for _, o := range declared {
		keys[o.Variable()] = o.Key
	}
	return keys
}

// readEnvironment returns the values by their keys, and the variables that mean none. An
// empty one is as good as not set: `${VAR:-}` in a compose file.
func readEnvironment(declared []option, environ []string) (values map[string]any, problems []*settingError) {
	values = map[string]any{}
	keys := variables(declared)
	for _, pair := range environ {
		name, text, _ := strings.Cut(pair, "=")
		key, known := keys[name]
		switch {
		case known && text != "":
			values[key] = text
		case known, !strings.HasPrefix(name, Prefix), name == FileVariable, strings.HasPrefix(name, testVariables), ofService.MatchString(name):
		default:
			problems = append(problems, &settingError{kind: errUnknown, key: name,
				problem: "unknown setting; did you mean " + nearest(name, slices.Collect(maps.Keys(keys))) + "?", from: Origin{"environment", ""}})
		}
	}
	slices.SortFunc(problems, func(a, b *settingError) int { return strings.Compare(a.key, b.key) })
	return values, problems
}
