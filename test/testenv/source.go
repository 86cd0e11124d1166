package testenv

// The sources of a test's servers, and which sources are allowed.

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

// Source is the kind of place that a server comes from.
type Source string

// The sources, in the order in which they are tried.
const (
	Given     Source = "given by environment"
	Container Source = "container"
	Local     Source = "local process"
	Embedded  Source = "embedded"
)

// errNotHere means that this machine does not have a source; the next one is tried. Any other error is a
// failure.
var errNotHere = errors.New("not on this machine")

// demand lists the sources that a value of DemandVariable allows.
type demand struct {
	shared  []Source // for the servers that tests share
	private []Source // for private servers
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

// demandsReal reports whether using embedded servers is a failure.
func demandsReal() bool {
	value := os.Getenv(DemandVariable)
	return value != "" && value != "embedded"
}

// server is the common part of a Kafka and a Redis.
type server struct {
	address string
	name    string
	source  Source
	close   func()
	passed  []error // why earlier sources were not used
}

func (s *server) base() *server { return s }

// Addr returns host:port. It stays the same when a private server is started again.
func (s *server) Addr() string { return s.address }

// Embedded reports whether the server is a fake, which does not behave like a real one in every respect.
func (s *server) Embedded() bool { return s.source == Embedded }

// String returns the server's source, name and address: "local process, Apache Kafka 4.2.0 at
// 127.0.0.1:19092".
func (s *server) String() string {
	if s.address == "" {
		return fmt.Sprintf("%s, %s, one for each package", s.source, s.name)
	}
	return fmt.Sprintf("%s, %s at %s", s.source, s.name, s.address)
}

// attempt starts an S from one source.
type attempt[S interface{ base() *server }] struct {
	source Source
	start  func(context.Context) (S, error)
}

// choose uses the first source that is allowed and that this machine has. An address in the environment may
// belong to a server that cmd/testenv has started, so its real source is known only after start.
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

// reasons returns the texts of the errors of sources that were not used, each as one line.
func reasons(passed []error) []string {
	texts := make([]string, len(passed))
	for i, err := range passed {
		text := strings.TrimSuffix(err.Error(), ": "+errNotHere.Error())
		texts[i] = strings.Join(strings.Fields(text), " ")
	}
	return texts
}

// instead reports an error if a source is to be skipped: the variable of another source is set, but not this
// source's own variable, and this source is not demanded.
func instead(own, other, demanded string) error {
	if os.Getenv(other) == "" || os.Getenv(own) != "" || os.Getenv(DemandVariable) == demanded {
		return nil
	}
	return fmt.Errorf("%s is set, and %s isn't: %w", other, own, errNotHere)
}

// handedOn returns the source of a server whose address is in the environment, as reported by cmd/testenv.
func handedOn(variable string) Source { return Source(cmp.Or(os.Getenv(variable), string(Given))) }

// Variables that cmd/testenv passes to the tests in addition to the addresses.
const (
	kafkaSourceVariable = "STANDINGS_TEST_KAFKA_WAY"
	redisSourceVariable = "STANDINGS_TEST_REDIS_WAY"
)
