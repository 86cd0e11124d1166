package testenv

// Code that private Kafkas and private Redises share.

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
)

// Tests start dozens of private servers, and a process starts much faster than a container: the tests of
// internal/ranking take 8 s with processes and a minute with containers. Private servers therefore try
// processes first.

// quickKafka returns nil if a private Kafka can be a local process.
func quickKafka() error {
	if err := instead(KafkaJarsVariable, KafkaImageVariable, "processes"); err != nil {
		return err
	}
	_, _, err := findKafka()
	return err
}

func quickRedis() error {
	if err := instead(RedisServerVariable, RedisImageVariable, "processes"); err != nil {
		return err
	}
	_, err := findRedisServer()
	return err
}

// private returns a server from the first source that this machine has, or reports the test as not run.
func private[S interface{ base() *server }](t testing.TB, what string, attempts []attempt[S]) S {
	t.Helper()
	d, err := demanded()
	if err != nil {
		t.Fatal(err)
	}
	s, err := choose(t.Context(), attempts, d.private)
	if errors.Is(err, errNotHere) {
		NotRun(t, "it needs a "+what+" of its own: "+strings.Join(reasons([]error{err}), ""))
	}
	if err != nil {
		t.Fatalf("a private %s: %v", what, err)
	}
	return s
}

// local starts a local process for a test that a container cannot serve, or reports the test as not run.
func local[S interface{ base() *server }](t testing.TB, what string, start func(context.Context) (S, error)) S {
	t.Helper()
	if os.Getenv(DemandVariable) == "embedded" {
		NotRun(t, "it needs a "+what+" that is a local process")
	}
	s, err := start(t.Context())
	if errors.Is(err, errNotHere) {
		NotRun(t, "it needs a "+what+" that is a local process: "+strings.Join(reasons([]error{err}), ""))
	}
	if err != nil {
		t.Fatalf("a private %s: %v", what, err)
	}
	return s
}

// did ends the test if an operation on its server failed.
func did(t testing.TB, what string, err error) {
	t.Helper()
	if errors.Is(err, errNotHere) {
		NotRun(t, what+": "+err.Error())
	}
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// privateSources returns the sources that a private Kafka and a private Redis would come from.
func privateSources(ctx context.Context) (kafka, redis string) {
	d, err := demanded()
	if err != nil {
		return err.Error(), err.Error()
	}
	find := func(container, local func() error) string {
		attempts := map[Source]func() error{Container: container, Local: local}
		for _, source := range d.private {
			err := attempts[source]()
			if err == nil {
				return string(source)
			}
			if !errors.Is(err, errNotHere) {
				return err.Error()
			}
		}
		return "none, not run"
	}
	kafka = find(
		func() error {
			image, err := kafkaImage()
			if err != nil {
				return err
			}
			return hasImage(ctx, KafkaImageVariable, image)
		},
		quickKafka)
	redis = find(
		func() error {
			image, err := redisImage()
			if err != nil {
				return err
			}
			return hasImage(ctx, RedisImageVariable, image)
		},
		quickRedis)
	return kafka, redis
}
