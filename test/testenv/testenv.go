// Package testenv provides tests with a Kafka and a Redis. Only tests import it.
//
// There are several sources, which are tried in this order. A test does not depend on which one is used:
//
//	given by environment   STANDINGS_TEST_KAFKA, STANDINGS_TEST_REDIS: host:port
//	container              a Docker daemon that has the image, under make test; no image is ever pulled
//	local process          Kafka's jars and a java; a redis-server or valkey-server
//	embedded               a fake broker, miniredis: needs only Go
//
// Private servers (PrivateKafka, PrivateRedis) come from the two sources in the middle, with processes first:
// tests start dozens of them, and a process starts much faster. A test that changes a server's files, or whose
// servers connect to each other, uses local processes (LocalKafka, LocalRedis), since a container has its own
// files and addresses.
//
// A PostgreSQL (Postgres, LocalPostgres) is given by STANDINGS_TEST_POSTGRES, or is a local process of Debian's
// or other programs. It has no embedded replacement: without a PostgreSQL, its tests are not run.
//
// A test that an embedded server cannot serve is reported as not run, by name (NotRun).
// STANDINGS_TEST_DEMAND excludes sources:
//
//	real          embedded servers are a failure, and so is a test that is not run
//	environment   the same, and the shared servers must be given
//	containers    the same, and every server is a container if it can be one
//	processes     the same, and every server is a local process
//	embedded      as on a machine with only Go
//
// The first test that needs a server starts it, once per process; it ends with the process. cmd/testenv starts
// the servers once for a whole run of several packages. An embedded Redis is the exception: each package starts
// its own, since it executes one command at a time, and scripts slowly. Only cmd/testenv links Docker's client,
// so only the tests that it runs can have containers.
package testenv

import (
	"errors"
	"os"
	"runtime/debug"
	"strings"
)

// Environment variables that choose the servers of the tests.
const (
	KafkaVariable        = "STANDINGS_TEST_KAFKA"         // host:port of a Kafka to use
	RedisVariable        = "STANDINGS_TEST_REDIS"         // host:port of a Redis to use
	KafkaImageVariable   = "STANDINGS_TEST_KAFKA_IMAGE"   // image of a container; default: apache/kafka:VERSION
	RedisImageVariable   = "STANDINGS_TEST_REDIS_IMAGE"   // image of Redis's container; default: RedisImage
	RedisServerVariable  = "STANDINGS_TEST_REDIS_SERVER"  // local server: redis-server, valkey-server or a path
	KafkaVersionVariable = "STANDINGS_TEST_KAFKA_VERSION" // version of Kafka to start; default: KafkaVersion
	KafkaJarsVariable    = "STANDINGS_TEST_KAFKA_JARS"    // directory of Kafka's jars
	DemandVariable       = "STANDINGS_TEST_DEMAND"        // allowed sources: see above
	PostgresVariable     = "STANDINGS_TEST_POSTGRES"      // URL of a PostgreSQL to use, whose user may create databases
	NotRunVariable       = "STANDINGS_TEST_NOTRUN"        // file that collects the tests that were not run
)

// appendLine writes in one call, so that lines of several processes do not mix.
func appendLine(path, line string) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line)
	return errors.Join(err, f.Close())
}

// testedPackage returns the path, within the module, of the package whose tests this process runs.
func testedPackage() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "?"
	}
	return withinModule(strings.TrimSuffix(info.Path, ".test"))
}

// withinModule removes the module's path from a package's path.
func withinModule(path string) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		path = strings.TrimPrefix(path, info.Main.Path+"/")
	}
	return path
}
