package testenv

// One Kafka and one Redis for a whole run of several packages. With an embedded Redis, each package starts its own.

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/standings/standings/internal/embedded/child"
)

// Run starts a Kafka and a Redis, prints which they are, runs a command that finds them in its environment,
// prints which tests were not run and which failed, and returns the command's error. The servers end before
// Run returns.
func Run(ctx context.Context, stdout, stderr io.Writer, command []string) error {
	kafka, err := startKafka(ctx)
	if err != nil {
		return fmt.Errorf("a Kafka for tests: %w", err)
	}
	defer kafka.close()
	redis, err := startRedis(ctx)
	if err != nil {
		return fmt.Errorf("a Redis for tests: %w", err)
	}
	defer redis.close()
	if redis.Embedded() && os.Getenv(RedisVariable) == "" {
		// It executes one command at a time, and scripts slowly, so each package starts its own.
		redis.address = ""
	}
	dir, err := os.MkdirTemp("", "standings-notrun-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	list := filepath.Join(dir, "list")

	which := fmt.Sprintf("Kafka: %v; Redis: %v\n", kafka, redis)
	fmt.Fprint(stdout, which)
	explain(ctx, stdout, kafka, redis)
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	// A test process that is interrupted ends its own servers; WaitDelay gives it time for that.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	failed := failures{to: stdout}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, &failed, stderr
	cmd.Env = append(os.Environ(),
		KafkaVariable+"="+kafka.address, kafkaSourceVariable+"="+string(kafka.source),
		RedisVariable+"="+redis.address, redisSourceVariable+"="+string(redis.source),
		NotRunVariable+"="+list)
	err = cmd.Run()
	if err != nil {
		err = fmt.Errorf("%s: %w", strings.Join(command, " "), err)
	}
	report(stdout, list)
	fmt.Fprint(stdout, which)
	failed.list(stdout)
	return err
}

// explain prints the sources of private servers, and, if a shared server is embedded, why it is.
func explain(ctx context.Context, w io.Writer, kafka *KafkaServer, redis *RedisServer) {
	ownKafka, ownRedis := privateSources(ctx)
	fmt.Fprintf(w, "A test's own Kafka: %s; Redis: %s\n", ownKafka, ownRedis)
	if os.Getenv(DemandVariable) == "embedded" {
		return // the setting is the reason
	}
	for _, s := range []struct {
		*server
		what string
	}{{kafka.base(), "Kafka"}, {redis.base(), "Redis"}} {
		if s.Embedded() && len(s.passed) > 0 {
			fmt.Fprintf(w, "No real %s: %s\n", s.what, strings.Join(reasons(s.passed), "; "))
		}
	}
}

func tail(file string) string { return strings.ReplaceAll(child.Tail(file, 20), " | ", "\n") }
