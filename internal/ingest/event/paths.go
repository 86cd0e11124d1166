package event

// The places of an event's fields in a value: their own names, or the names and paths of topics that already
// exist. The paths are turned into a tree of names once, and a value is read along it.

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Paths are the fields' paths: names joined by dots, the outermost first, as in player.id. In a name \. is a
// dot and \\ a backslash. An empty path means the field's own name.
//
// An empty path for Name means that display names are not read.
type Paths struct{ EventID, UserID, Points, Board, OccurredAt, Name string }

// Other is a field that boards with other rules count: its name and its path.
type Other struct{ Name, Path string }

// Limits of a path.
const (
	maxPathBytes = 256
	maxPathNames = 8
)

// The fields, in the order of Paths, and the members of a CloudEvents envelope.
type field int8

const (
	idField field = iota
	userField
	pointsField
	boardField
	occurredField
	nameField
	ownFields // number of fields above
)

const (
	versionField = ownFields + iota
	attributeIDField
	attributeTimeField
	contentTypeField
	dataField
	base64Field
	fieldCount

	noField field = -1
)

// The fields of other rules follow from fieldCount on, in the order in which NewFields gets them.

var fieldNames = [ownFields]string{"event_id", "user_id", "points", "board", "occurred_at", "name"}

// IsOwn reports whether a name is one of the fields that every event has or may have.
func IsOwn(name string) bool { return slices.Contains(fieldNames[:], name) }

// Fields are checked Paths. They may be shared.
type Fields struct {
	plain    *object  // an event
	envelope *object  // a CloudEvent in structured mode
	labels   []string // the name of each field in messages
	names    []string // the default name of each field
	named    bool     // display names are read
	count    int      // number of fields, including those of other rules
}

// object has the members that are read in a JSON object.
type object struct {
	members []*member
	longest int // maximum size in JSON of a member's name, in bytes
	// own are the members that have the name of a field, whatever their purpose; nil if there is none.
	own [ownFields]*member
	// first is the first member whose plain has this many bytes; its next is another.
	first [maxPathBytes + 3]*member
}

// member is a name that is a field's, that leads to fields, or, in an envelope, both.
type member struct {
	name  string
	plain string // the quoted name, if it needs no escape; else empty
	label string // its path, for messages
	field field
	inner *object
	set   []bool  // the fields at and below it
	next  *member // another member whose plain has the same length
}

// PathError describes what is wrong with the path of a field.
type PathError struct {
	Field   string // such as user_id
	Problem string // such as "has an empty name"
}

func (e *PathError) Error() string { return e.Field + " " + e.Problem }

// NewFields checks each path, and that all of them can be used together. Its error is a *PathError.
func NewFields(p Paths, others ...Other) (*Fields, error) {
	texts := []string{p.EventID, p.UserID, p.Points, p.Board, p.OccurredAt, p.Name}
	f := &Fields{plain: &object{}, named: p.Name != "", names: slices.Clone(fieldNames[:])}
	for _, o := range others {
		texts, f.names = append(texts, o.Path), append(f.names, o.Name)
	}
	f.count = int(fieldCount) + len(others)
	// The members of an envelope are between the own fields and those of other rules.
	f.labels = make([]string, f.count)
	paths := make([][]string, len(texts))
	for i := range texts {
		own, at := f.names[i], field(i)
		if at >= ownFields {
			at += fieldCount - ownFields
		}
		f.labels[at] = own
		if at == nameField && !f.named {
			continue
		}
		if texts[i] == "" {
			texts[i] = own
		}
		names, err := splitPath(texts[i])
		if err != nil {
			return nil, &PathError{own, err.Error()}
		}
		if texts[i] != own {
			f.labels[at] = own + " (" + printable([]byte(texts[i]), maxLabel) + ")"
		}
		for j := range i {
			if paths[j] == nil {
				continue
			}
			if problem := clash(names, paths[j], f.names[j]); problem != "" {
				return nil, &PathError{own, problem}
			}
		}
		paths[i] = names
		f.plain.add(names, at, f.count)
	}
	f.envelope = &object{}
	for i, name := range []string{"specversion", "id", "time", "datacontenttype", "data", "data_base64"} {
		f.envelope.add([]string{name}, versionField+field(i), f.count)
	}
	f.envelope.enclose(dataField, f.plain)
	return f, nil
}

// CheckPath returns what is wrong with a single path. An empty path is valid.
func CheckPath(text string) error {
	if text == "" {
		return nil
	}
	_, err := splitPath(text)
	return err
}

// maxLabel is the maximum number of bytes of a path in a message.
const maxLabel = 40

func splitPath(text string) ([]string, error) {
	switch {
	case len(text) > maxPathBytes:
		return nil, fmt.Errorf("is longer than %d bytes", maxPathBytes)
	case !utf8.ValidString(text):
		return nil, errors.New("is not UTF-8")
	}
	var names []string
	var name []byte
	for i := 0; i <= len(text); i++ {
		switch {
		case i == len(text) || text[i] == '.':
			if len(name) == 0 {
				return nil, errors.New("has an empty name: join names by dots, as in player.id")
			}
			names, name = append(names, string(name)), nil
		case text[i] != '\\':
			name = append(name, text[i])
		case i+1 < len(text) && (text[i+1] == '.' || text[i+1] == '\\'):
			i++
			name = append(name, text[i])
		default:
			return nil, errors.New(`has an invalid escape: write \. for a dot in a name, \\ for a backslash`)
		}
	}
	if len(names) > maxPathNames {
		return nil, fmt.Errorf("has %d names, more than %d", len(names), maxPathNames)
	}
	return names, nil
}

// clash returns why a path cannot be used together with that of another field; empty if it can.
func clash(names, others []string, other string) string {
	n := min(len(names), len(others))
	switch {
	case !slices.Equal(names[:n], others[:n]):
		return ""
	case len(names) == len(others):
		return "is the path of " + other + " too: every field needs its own path"
	case len(names) < len(others):
		return "leads to " + other + " too, so it must be an object and cannot be a value"
	}
	if path := joined(others); path != other {
		other += " (" + path + ")"
	}
	return "is inside " + other + ", which must be a value and cannot be an object"
}

func joined(names []string) string {
	escaped := make([]string, len(names))
	for i, name := range names {
		escaped[i] = strings.NewReplacer(`\`, `\\`, ".", `\.`).Replace(name)
	}
	return strings.Join(escaped, ".")
}

// name returns a field's default name in an event.
func (f *Fields) name(of field) string {
	if of >= fieldCount {
		of -= fieldCount - ownFields
	}
	return f.names[of]
}

// find returns the field of other rules that has this name.
func (f *Fields) find(name string) (field, bool) {
	if i := slices.Index(f.names[ownFields:], name); i >= 0 {
		return fieldCount + field(i), true
	}
	return noField, false
}

// add adds a field to the tree. count is the number of fields.
func (o *object) add(names []string, f field, count int) {
	for i, name := range names {
		at := slices.IndexFunc(o.members, func(m *member) bool { return m.name == name })
		if at < 0 {
			at = len(o.members)
			m := &member{
				name: name, plain: inJSON(name), field: noField, set: make([]bool, count),
				label: printable([]byte(joined(names[:i+1])), maxLabel),
			}
			m.next = o.first[len(m.plain)]
			o.first[len(m.plain)] = m
			o.members = append(o.members, m)
			if own := slices.Index(fieldNames[:], name); own >= 0 {
				o.own[own] = m
			}
			o.longest = max(o.longest, longestEscaped(len(name)))
		}
		m := o.members[at]
		m.set[f] = true
		if i == len(names)-1 {
			m.field = f
			return
		}
		if m.inner == nil {
			m.inner = &object{}
		}
		o = m.inner
	}
}

// enclose makes the member of field f also lead to the fields of an object.
func (o *object) enclose(f field, inner *object) {
	for _, m := range o.members {
		if m.field != f {
			continue
		}
		m.inner = inner
		for _, below := range inner.members {
			for k, in := range below.set {
				m.set[k] = m.set[k] || in
			}
		}
	}
}

// inJSON returns a name in quotes, as nearly all producers write it; empty if the name needs an escape.
func inJSON(name string) string {
	for i := range len(name) {
		if c := name[i]; c < ' ' || c == '"' || c == '\\' {
			return ""
		}
	}
	return `"` + name + `"`
}
