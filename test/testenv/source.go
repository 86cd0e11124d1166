package testenv

// Where a test's servers are from, and which sources are allowed.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

// Source is where a server is from.
type Source string

// The sources, in the order in which they are tried.
const (
	Given     Source = "given by environment"
	Container Source = "container"
	Local     Source = "local process"
	Embedded  Source = "embedded"
)

// errNotHere says that this machine doesn't have a source, so that the next one
// is tried. Any other error is a failure.
var errNotHere = errors.New("not on this machine")

// demand is what a value of DemandVariable allows.
type demand struct {
	shared  []Source // for the servers that tests share
	private []Source // for those of a test's own
}

var demands = map[string]demand{
	"":            {shared: []Source{Given, Container, Local, Embedded}, private: []Source{Local, Container}},
	"real":        {shared: []Source{Given, Container, Local}, private: []Source{Local, Container}},
	"environment": {shared: []Source{Given}, private: []Source{Local, Container}},
	"containers":  {shared: []Source{Container}, private: []Source{Container}},
	"processes":   {shared: []Source{Local}, private: []Source{Local}},
	"embedded":    {shared: []Source{Embedded}},
}

func demanded() (demand, error) {
	value := os.Getenv(DemandVariable)
	d, ok := demands[value]
	if !ok {
		return demand{}, fmt.Errorf("%s=%s: it is one of %s", DemandVariable, value,
			strings.Join(slices.Sorted(maps.Keys(demands))[1:], ", "))
	}
	return d, nil
}

// demandsReal reports whether embedded servers are a failure.
func demandsReal() bool {
	value := os.Getenv(DemandVariable)
	return value != "" && value != "embedded"
}

// server is what a Kafka and a Redis have in common.
type server struct {
	address string
	name    string
	source  Source
	close   func()
	passed  []error // why the sources before it weren't used
}

func (s *server) base() *server { return s }

// Addr is host:port. It stays the same when a private server is started again.
func (s *server) Addr() string { return s.address }

// Embedded reports whether it only stands in for a real one, and can't show
// everything.
func (s *server) Embedded() bool { return s.source == Embedded }

// String says what it is and where it is from: "local process, Apache Kafka
// 4.2.0 at 127.0.0.1:19092".
func (s *server) String() string {
	if s.address == "" {
		return fmt.Sprintf("%s, %s, one for each package", s.source, s.name)
	}
	return fmt.Sprintf("%s, %s at %s", s.source, s.name, s.address)
}

// attempt is how an S is had from one source.
type attempt[S interface{ base() *server }] struct {
	source Source
	start  func(context.Context) (S, error)
}

// choose takes the first source that is allowed and that this machine has. An address in
// the environment may be that of a server which cmd/testenv has started, so what it
// is shows only afterwards.
func choose[S interface{ base() *server }](ctx context.Context, attempts []attempt[S], allowed []Source) (S, error) {
	var none S
	var passed []error
	for _, w := range attempts {
		if w.source != Given && !slices.Contains(allowed, w.source) {
			continue
		}
		s, err := w.start(ctx)
		if errors.Is(err, errNotHere) {
			passed = append(passed, err)
			continue
		}
		if err != nil {
			return none, err
		}
		s.base().passed = passed
		if !slices.Contains(allowed, s.base().source) {
			s.base().close()
			return none, fmt.Errorf("%s=%s, but it is %v", DemandVariable, os.Getenv(DemandVariable), s.base())
		}
		return s, nil
	}
	if value := os.Getenv(DemandVariable); value != "" {
		passed = append(passed, fmt.Errorf("%s=%s allows nothing else", DemandVariable, value))
	}
	return none, fmt.Errorf("%s: %w", strings.Join(reasons(passed), "; "), errNotHere)
}

// reasons are what the errors of sources that were passed over say, each on a line.
func reasons(passed []error) []string {
	texts := make([]string, len(passed))
	for i, err := range passed {
		text := strings.TrimSuffix(err.Error(), ": "+errNotHere.Error())
		texts[i] = strings.Join(strings.Fields(text), " ")
	}
	return texts
}

// instead passes a source over where another was chosen by its variable, and this
// one neither by its own nor by what is demanded.
func instead(own, other, demanded string) error {
	if os.Getenv(other) == "" || os.Getenv(own) != "" || os.Getenv(DemandVariable) == demanded {
		return nil
	}
	return fmt.Errorf("%s is set, and %s isn't: %w", other, own, errNotHere)
}

// handedOn is the source of a server whose address is in the environment: cmd/testenv
// says where it has it from.
func handedOn(variable string) Source { return Source(cmp.Or(os.Getenv(variable), string(Given))) }

// What cmd/testenv says to the tests besides the addresses.
const (
	kafkaSourceVariable = "STANDINGS_TEST_KAFKA_WAY"
	redisSourceVariable = "STANDINGS_TEST_REDIS_WAY"
)
