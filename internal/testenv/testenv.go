// Package testenv gives a test its Kafka and its Redis. Only tests import it.
//
// There are several ways to get one, tried in this order, and a test neither
// knows nor cares which it was:
//
//	given by environment   STANDINGS_TEST_KAFKA, STANDINGS_TEST_REDIS: host:port
//	local process          Kafka's jars and a java; a redis-server or valkey-server
//	embedded               a fake broker, miniredis: needs nothing but Go
//
// What an embedded one can't show is reported as not run, by name (NotRun); with
// STANDINGS_TEST_DEMAND=real it is a failure. STANDINGS_TEST_DEMAND=embedded starts
// no local process, as on a machine with only Go.
//
// The servers are started once a process, by the first test that asks, and end
// with it. cmd/testenv starts them once for a whole run of several packages.
package testenv

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"testing"
)

// The environment that says what tests run on.
const (
	KafkaVariable        = "STANDINGS_TEST_KAFKA"         // host:port of a Kafka to use
	RedisVariable        = "STANDINGS_TEST_REDIS"         // host:port of a Redis to use
	RedisServerVariable  = "STANDINGS_TEST_REDIS_SERVER"  // redis-server, valkey-server or a path
	KafkaVersionVariable = "STANDINGS_TEST_KAFKA_VERSION" // version of Kafka that is started; KafkaVersion if empty
	KafkaJarsVariable    = "STANDINGS_TEST_KAFKA_JARS"    // directory of Kafka's jars
	DemandVariable       = "STANDINGS_TEST_DEMAND"        // real: embedded servers are a failure; embedded: only they are used
	NotRunVariable       = "STANDINGS_TEST_NOTRUN"        // file that collects what was not run
)

// Way is how a server was come by.
type Way string

// The ways, in the order in which they are tried.
const (
	Given    Way = "given by environment"
	Local    Way = "local process"
	Embedded Way = "embedded"
)

// errNotHere is a way's answer that it can't be gone on this machine, so that the
// next is tried. Any other error is a failure.
var errNotHere = errors.New("not on this machine")

// DemandsReal reports whether embedded servers are a failure.
func DemandsReal() bool { return os.Getenv(DemandVariable) == "real" }

// onlyEmbedded makes any machine one that has only Go.
func onlyEmbedded() error {
	if os.Getenv(DemandVariable) != "embedded" {
		return nil
	}
	return fmt.Errorf("%s=embedded: %w", DemandVariable, errNotHere)
}

// NotRun ends a test that this machine can't run, loudly: it is skipped with the
// reason and put on the list that make test prints at its end. Where real servers
// are demanded it fails.
func NotRun(t testing.TB, reason string) {
	t.Helper()
	if DemandsReal() {
		t.Fatalf("real servers are demanded (%s=real), but: %s", DemandVariable, reason)
	}
	if list := os.Getenv(NotRunVariable); list != "" {
		line := fmt.Sprintf("%s %s: %s\n", testedPackage(), t.Name(), reason)
		if err := appendLine(list, line); err != nil {
			t.Fatalf("report a test that is not run: %v", err)
		}
	}
	t.Skip("NOT RUN: " + reason)
}

// appendLine writes in one call, so that lines of several processes don't mix.
func appendLine(path, line string) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line)
	return errors.Join(err, f.Close())
}

// testedPackage is the path of the package whose tests this process runs, within
// the module.
func testedPackage() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "?"
	}
	path := strings.TrimSuffix(info.Path, ".test")
	return strings.TrimPrefix(path, info.Main.Path+"/")
}
