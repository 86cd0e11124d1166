package testenv

// How a server is come by, and which of the ways are allowed.

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

// Way is how a server was come by.
type Way string

// The ways, in the order in which they are tried.
const (
	Given     Way = "given by environment"
	Container Way = "container"
	Local     Way = "local process"
	Embedded  Way = "embedded"
)

// errNotHere is a way's answer that it can't be gone on this machine, so that the
// next is tried. Any other error is a failure.
var errNotHere = errors.New("not on this machine")

// demand is what a value of DemandVariable allows.
type demand struct {
	shared  []Way // for the servers that tests share
	private []Way // for those of a test's own
}

var demands = map[string]demand{
	"":            {shared: []Way{Given, Container, Local, Embedded}, private: []Way{Local, Container}},
	"real":        {shared: []Way{Given, Container, Local}, private: []Way{Local, Container}},
	"environment": {shared: []Way{Given}, private: []Way{Local, Container}},
	"containers":  {shared: []Way{Container}, private: []Way{Container}},
	"processes":   {shared: []Way{Local}, private: []Way{Local}},
	"embedded":    {shared: []Way{Embedded}},
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
	way     Way
	close   func()
	passed  []error // why the ways before it couldn't be gone
}

func (s *server) base() *server { return s }

// Addr is host:port. It stays the same when a private server is started again.
func (s *server) Addr() string { return s.address }

// Embedded reports whether it only stands in for a real one, and can't show
// everything.
func (s *server) Embedded() bool { return s.way == Embedded }

// String says what it is and how it was come by: "local process, Apache Kafka
// 4.2.0 at 127.0.0.1:19092".
func (s *server) String() string { return fmt.Sprintf("%s, %s at %s", s.way, s.name, s.address) }

// attempt is one way to come by an S.
type attempt[S interface{ base() *server }] struct {
	way   Way
	start func(context.Context) (S, error)
}

// choose goes the first of the ways that is allowed and can be gone. An address in
// the environment may be that of a server which cmd/testenv has started, so what it
// is shows only afterwards.
func choose[S interface{ base() *server }](ctx context.Context, ways []attempt[S], allowed []Way) (S, error) {
	var none S
	var passed []error
	for _, w := range ways {
		if w.way != Given && !slices.Contains(allowed, w.way) {
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
		if !slices.Contains(allowed, s.base().way) {
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

// reasons are what the errors of passed ways say, each on a line.
func reasons(passed []error) []string {
	texts := make([]string, len(passed))
	for i, err := range passed {
		text := strings.TrimSuffix(err.Error(), ": "+errNotHere.Error())
		texts[i] = strings.Join(strings.Fields(text), " ")
	}
	return texts
}

// instead passes a way over where another was asked for by its variable, and this
// one neither by its own nor by what is demanded.
func instead(own, other, demanded string) error {
	if os.Getenv(other) == "" || os.Getenv(own) != "" || os.Getenv(DemandVariable) == demanded {
		return nil
	}
	return fmt.Errorf("%s is set, and %s isn't: %w", other, own, errNotHere)
}

// handedOn is the way of a server whose address is in the environment: cmd/testenv
// says how it has come by it.
func handedOn(variable string) Way { return Way(cmp.Or(os.Getenv(variable), string(Given))) }

// What cmd/testenv says to the tests besides the addresses.
const (
	kafkaWayVariable = "STANDINGS_TEST_KAFKA_WAY"
	redisWayVariable = "STANDINGS_TEST_REDIS_WAY"
)
