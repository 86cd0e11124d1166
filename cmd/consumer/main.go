// Command consumer keeps leaderboards in Redis from points-earned events in Kafka. This file handles
// signals and the exit code; the root command does the rest.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	_ "modernc.org/sqlite" // the driver of the archive
)

// together is the maximum time between two signals that count as one request.
const together = 500 * time.Millisecond

func main() {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		<-signals
		cancel()
		// A second signal means exit at once. Nothing is cleaned up, and the ledger makes that safe. But
		// one request often arrives as two signals, because timeout(1) and shells send it to a process and
		// to its group.
		asked := time.Now()
		for again := range signals {
			if s, ok := again.(syscall.Signal); ok && time.Since(asked) > together {
				os.Exit(128 + int(s))
			}
		}
	}()
	os.Exit(consumer(ctx, os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr))
}
