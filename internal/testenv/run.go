package testenv

// One Kafka and one Redis for a whole run of several packages.

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

// Run starts a Kafka and a Redis, says which they are, runs a command that finds
// them in its environment, lists at its end what was not run, and returns its
// error. The servers end before Run does.
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
	dir, err := os.MkdirTemp("", "standings-notrun-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	list := filepath.Join(dir, "list")

	say(stdout, kafka, redis)
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	// A test process that is asked to end takes its servers along; give it the time.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, stdout, stderr
	cmd.Env = append(os.Environ(),
		KafkaVariable+"="+kafka.address, RedisVariable+"="+redis.address, NotRunVariable+"="+list)
	err = cmd.Run()
	if err != nil {
		err = fmt.Errorf("%s: %w", strings.Join(command, " "), err)
	}
	report(stdout, list)
	say(stdout, kafka, redis)
	return err
}

func say(w io.Writer, kafka *KafkaServer, redis *RedisServer) {
	fmt.Fprintf(w, "Kafka: %v; Redis: %v\n", kafka, redis)
}

// report prints what the tests reported as not run: nothing is passed over.
func report(w io.Writer, list string) {
	text, err := os.ReadFile(list)
	if err != nil {
		return // nobody wrote one
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	fmt.Fprintf(w, "\nNOT RUN on these servers: %d tests\n", len(lines))
	for _, line := range lines {
		fmt.Fprintf(w, "  %s\n", line)
	}
	fmt.Fprintln(w)
}

func tail(file string) string { return strings.ReplaceAll(child.Tail(file, 20), " | ", "\n") }
