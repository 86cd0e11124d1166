package config

// Loading the configuration: defaults, then the file, then the environment. Each is a layer, so that each value
// keeps its origin.

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

const (
	// Prefix is the prefix of all environment variables.
	Prefix        = "STANDINGS_"
	FileVariable  = Prefix + "CONFIG" // names the file, like --config
	testVariables = Prefix + "TEST_"  // used by tests; not checked here
)

// ofService matches variables that Kubernetes sets in every pod of a namespace with a service whose name starts
// with standings. They are not settings.
var ofService = regexp.MustCompile(`^` + Prefix + `([A-Z0-9_]+_)?(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT(_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)$`)

// Origin is the source of a value: a layer, and in it the file's path or the variable's name.
type Origin struct{ Layer, Name string }

// String returns the form that `consumer config` shows: environment STANDINGS_START.
func (o Origin) String() string {
	if o.Name == "" {
		return o.Layer
	}
	return o.Layer + " " + o.Name
}

// Setting is an option with the origin of its value.
type Setting struct {
	option
	From Origin
}

// Shown returns the value without secrets.
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

// Loaded is a configuration with the origin of each setting, and the problems found while reading. It must not
// be used before validate has returned nil, as Load ensures.
type Loaded struct {
	Config   *Config
	Settings []Setting
	problems []*settingError
}

func (l *Loaded) setting(key string) Setting {
	return l.Settings[slices.IndexFunc(l.Settings, func(s Setting) bool { return s.Key == key })]
}

// Load reads the file at path, or the file that environ names, then applies environ, and validates the result.
// Its error contains every problem, one per line.
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

// layer is one source of values: the raw value and origin of each key.
type layer struct {
	name   string
	values map[string]any
	from   func(key string) Origin
}

// read applies the file at path (empty for none) and environ to the defaults. Unknown keys and unreadable
// values become problems, which validate returns.
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

// readLayers returns the layers above the defaults. Later ones take precedence.
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

// assign sets an option to a raw value from YAML or the environment.
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

// scalar returns the text of a YAML value that is not a list or a section.
func scalar(raw any) (string, bool) {
	switch v := raw.(type) {
	case nil, map[string]any, []any:
		return "", false
	case time.Time: // YAML reads an unquoted date as a time
		return v.Format(time.RFC3339Nano), true
	}
	return fmt.Sprint(raw), true
}

// isBuiltIn reports whether a key would change the windows of a built-in period.
func isBuiltIn(key string) bool {
	name, setting := ownSetting(key)
	return name.Length() != 0 && slices.Contains(windowSettings, setting)
}

// ofNoPeriod reports whether a key belongs to a period that is not defined.
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
		case isSection && !empty: // its keys are checked as well
		// Below a setting: that the setting got a section is reported for the setting.
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
		case !empty: // `redis:` with everything below it commented out is valid
			problems = append(problems, &settingError{kind: errType, key: key,
				problem: "is a value, but must be a section", from: from(key)})
		}
	}
	return problems
}

// variables returns the keys of settings by the names of their environment variables.
func variables(declared []option) map[string]string {
	keys := make(map[string]string, len(declared))
	for _, o := range declared {
		keys[o.Variable()] = o.Key
	}
	return keys
}

// readEnvironment returns the values by their keys, and the unknown variables. An empty variable counts as not
// set, as `${VAR:-}` in a compose file sets it.
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

// readFile returns the values and lines of the sections and settings of a YAML file. It returns none without a
// path.
func readFile(path string) (values map[string]any, lines map[string]int, err error) {
	values, lines = map[string]any{}, map[string]int{}
	if path == "" {
		return values, lines, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, fileProblem(path, err)
	}
	var tree map[string]any
	var document yaml.Node
	if err := yaml.Unmarshal(text, &tree); err != nil {
		return nil, nil, fileProblem(path, err)
	}
	if err := yaml.Unmarshal(text, &document); err != nil {
		return nil, nil, fileProblem(path, err)
	}
	noteValues(tree, "", values)
	for _, root := range document.Content {
		noteLines(root, "", lines)
	}
	return values, lines, nil
}

// noteValues collects the values of a section, in the order of its keys. If a section has both a key a with b in
// it and a key a.b, the latter wins, because it is later in that order. A key that is not text is taken as it is
// written.
func noteValues(tree map[string]any, section string, values map[string]any) {
	for _, key := range slices.Sorted(maps.Keys(tree)) {
		value := tree[key]
		if below, ok := asSection(value); ok && value != nil {
			value = below
			noteValues(below, section+key+".", values)
		}
		values[section+key] = value
	}
}

// noteLines collects the lines of a section's keys. It does not follow aliases: their keys have the line of
// their use.
func noteLines(node *yaml.Node, section string, lines map[string]int) {
	if node.Kind != yaml.MappingNode {
		return
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		name := section + node.Content[i].Value
		lines[name] = node.Content[i].Line
		noteLines(node.Content[i+1], name+".", lines)
	}
}
