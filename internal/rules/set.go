package rules

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/periods"
)

// Set is every setting that decides how a record counts. Consumers with equal sets count every record in
// the same way. A sweep is finished with the set that it was started with.
//
// Retention isn't part of a Set, because it decides only what is kept. Layouts are part of the schema.
type Set struct {
	Boards  map[string]Board // by name; AnyBoard is for all other boards
	Periods map[periods.Period]Period
	// Fields maps names to paths in the event, for values that aren't under their own names.
	Fields        map[string]string
	MaxEventBytes int64
	MaxFuture     int64 // ms
	Duplicates    int64 // records to look back for duplicates; 0: no check
}

// AnyBoard stands for all boards that aren't named.
const AnyBoard = "*"

// Board is a board's rule and its periods, in the order of the configuration.
type Board struct {
	Rule    Rule
	Periods []periods.Period
}

// Period is a period, and how long its windows accept events after their end, in ms.
type Period struct {
	Rule     periods.Rule
	Lateness int64
}

const setVersion = 1

// Types for the JSON of a Set. Their keys are sorted, like those of maps.
type (
	setText struct {
		Boards        map[string]boardText          `json:"boards"`
		Duplicates    int64                         `json:"duplicates"`
		Fields        map[string]string             `json:"fields"`
		MaxEventBytes int64                         `json:"max_event_bytes"`
		MaxFuture     int64                         `json:"max_future_ms"`
		Periods       map[periods.Period]periodText `json:"periods"`
		Version       int                           `json:"v"`
	}
	boardText struct {
		Fields  []fieldText      `json:"fields"`
		Periods []periods.Period `json:"periods"`
		Score   Score            `json:"score"`
	}
	fieldText struct {
		Fewest bool   `json:"fewest,omitempty"`
		Max    int64  `json:"max"`
		Name   string `json:"name"`
		Signed bool   `json:"signed,omitempty"`
	}
	periodText struct {
		Lateness int64         `json:"lateness_ms"`
		Of       periods.Parts `json:"of"`
	}
)

// Text returns the set as canonical JSON: equal sets have equal texts, byte by byte.
func (s *Set) Text() string {
	text := setText{
		Boards: map[string]boardText{}, Duplicates: s.Duplicates, Fields: map[string]string{},
		MaxEventBytes: s.MaxEventBytes, MaxFuture: s.MaxFuture, Periods: map[periods.Period]periodText{}, Version: setVersion,
	}
	for name, b := range s.Boards {
		board := boardText{Score: b.Rule.Score, Fields: []fieldText{}, Periods: append([]periods.Period{}, b.Periods...)}
		for _, f := range b.Rule.Fields.List() {
			board.Fields = append(board.Fields, fieldText{Fewest: f.Fewest, Max: f.Max, Name: f.Name, Signed: f.Signed})
		}
		text.Boards[name] = board
	}
	for name, p := range s.Periods {
		text.Periods[name] = periodText{p.Lateness, p.Rule.Parts()}
	}
	for name, path := range s.Fields {
		text.Fields[name] = path
	}
	out, err := json.Marshal(text)
	if err != nil {
		panic(err) // texts and integers only
	}
	return string(out)
}

// Fingerprint returns the fingerprint of a text.
func Fingerprint(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// Parse parses the text of a set. It accepts only what Text writes in this version, so that no consumer
// counts by rules that it knows only partly.
func Parse(text string) (Set, error) {
	s, err := parse(text)
	if err != nil {
		return Set{}, fmt.Errorf("read rules %s: %w", Fingerprint(text), err)
	}
	return s, nil
}

func parse(text string) (Set, error) {
	var t setText
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.DisallowUnknownFields()
	if err := d.Decode(&t); err != nil {
		return Set{}, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return Set{}, errors.New("unexpected data after the rules")
	}
	if t.Version != setVersion {
		return Set{}, fmt.Errorf("version %d: this program reads version %d", t.Version, setVersion)
	}
	s := Set{
		Boards: map[string]Board{}, Periods: map[periods.Period]Period{}, Fields: t.Fields,
		MaxEventBytes: t.MaxEventBytes, MaxFuture: t.MaxFuture, Duplicates: t.Duplicates,
	}
	for name, p := range t.Periods {
		rule, err := periods.Of(name, p.Of)
		if err != nil {
			return Set{}, err
		}
		s.Periods[name] = Period{rule, p.Lateness}
	}
	for name, b := range t.Boards {
		rule, err := b.rule()
		if err != nil {
			return Set{}, fmt.Errorf("board %.70q: %w", name, err)
		}
		for _, p := range b.Periods {
			if _, ok := s.Periods[p]; !ok {
				return Set{}, fmt.Errorf("board %.70q: unknown period %.40q", name, p)
			}
		}
		s.Boards[name] = Board{rule, b.Periods}
	}
	if s.Text() != text {
		return Set{}, errors.New("not in canonical form")
	}
	return s, nil
}

func (b *boardText) rule() (Rule, error) {
	list := make([]codec.Field, len(b.Fields))
	for i, f := range b.Fields {
		list[i] = codec.Field{Name: f.Name, Max: f.Max, Signed: f.Signed, Fewest: f.Fewest}
	}
	fields, err := codec.NewFields(list...)
	if err != nil {
		return Rule{}, err
	}
	return New(b.Score, fields)
}
