// Package testenv gives a test its Kafka and its Redis. Only tests import it.
//
// There are several ways to get one, tried in this order, and a test neither
// knows nor cares which it was:
//
//	given by environment   STANDINGS_TEST_KAFKA, STANDINGS_TEST_REDIS: host:port
//	container              a Docker daemon that has the image, under make test; none is ever pulled
//	local process          Kafka's jars and a java; a redis-server or valkey-server
//	embedded               a fake broker, miniredis: needs nothing but Go
//
// Servers of a test's own (PrivateKafka, PrivateRedis) are had in the two ways in
// the middle, processes first: there are dozens, and a process starts far sooner. A
// test that changes a server's files, or whose servers reach each other, has local
// processes (LocalKafka, LocalRedis): what is in a container has files and addresses
// of its own.
//
// A PostgreSQL (Postgres, LocalPostgres) is given by STANDINGS_TEST_POSTGRES, or is a local
// process of Debian's or any other programs; it has no stand-in, so that its tests are not run
// where there is none.
//
// What an embedded server can't show is reported as not run, by name (NotRun).
// STANDINGS_TEST_DEMAND takes ways away:
//
//	real          embedded servers are a failure, as is a test that isn't run
//	environment   the same, and the servers that tests share have to be given
//	containers    the same, and any server is a container that can be one
//	processes     the same, and any server is a local process
//	embedded      as on a machine with only Go
//
// The servers are started once a process, by the first test that asks, and end
// with it. cmd/testenv starts them once for a whole run of several packages, but of an
// embedded Redis each has its own: it executes one command at a time, and scripts slowly.
// It alone links Docker's client, so that only the tests that it runs can have containers.
package testenv

import (
	"errors"
	"os"
	"runtime/debug"
	"strings"
)

// The environment that says what tests run on.
const (
	KafkaVariable        = "STANDINGS_TEST_KAFKA"         // host:port of a Kafka to use
	RedisVariable        = "STANDINGS_TEST_REDIS"         // host:port of a Redis to use
	KafkaImageVariable   = "STANDINGS_TEST_KAFKA_IMAGE"   // image of a container; apache/kafka of the version if empty
	RedisImageVariable   = "STANDINGS_TEST_REDIS_IMAGE"   // image of a container; RedisImage if empty
	RedisServerVariable  = "STANDINGS_TEST_REDIS_SERVER"  // local redis-server, valkey-server or a path
	KafkaVersionVariable = "STANDINGS_TEST_KAFKA_VERSION" // version of Kafka that is started; KafkaVersion if empty
	KafkaJarsVariable    = "STANDINGS_TEST_KAFKA_JARS"    // directory of Kafka's jars
	DemandVariable       = "STANDINGS_TEST_DEMAND"        // which ways may be gone: see above
	PostgresVariable     = "STANDINGS_TEST_POSTGRES"      // URL of a PostgreSQL to use, whose user may make databases
	NotRunVariable       = "STANDINGS_TEST_NOTRUN"        // file that collects what was not run
)

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
	return withinModule(strings.TrimSuffix(info.Path, ".test"))
}

// withinModule is a package's path without that of this module.
func withinModule(path string) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		path = strings.TrimPrefix(path, info.Main.Path+"/")
	}
	return path
}
