package chaos

// This file reads boards continuously, as operators and scripts do. During a fault, reads may be refused,
// but must never show something that is not a board.

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/standings/standings/test/harness"
)

// readers holds the results of all reads.
type readers struct {
	mu    sync.Mutex
	reads Reads
	wrong []string

	stop func()
}

// readBoards have windows of every default period.
var readBoards = []string{"global", "eu", "asia", "arena", "ladder"}

func startReaders(t *testing.T, w *world, seed uint64) *readers {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	rs := &readers{stop: func() { cancel(); <-done }}
	random := rand.New(rand.NewPCG(seed, 200))
	// The timeout is longer than the consumers', because a read may have to wait until a master is
	// replaced.
	binary, environment := harness.Binary(t), w.place.Environment(map[string]string{"redis.timeout": "5s"})
	go func() {
		defer close(done)
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(between(random, 200*time.Millisecond, 1200*time.Millisecond)):
			}
			board, period := readBoards[random.IntN(len(readBoards))], []string{"weekly", "monthly", "yearly"}[random.IntN(3)]
			// On a busy machine one read may exceed its deadline, but not two.
			if refused := rs.read(ctx, w, binary, environment, board, period); refused != "" {
				if again := rs.read(ctx, w, binary, environment, board, period); again != "" {
					rs.note(refused + "\nand again: " + again)
				}
			}
		}
	}()
	t.Cleanup(rs.stop)
	return rs
}

func (rs *readers) note(wrong string) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.wrong = append(rs.wrong, wrong)
}

// read reads a board once with the built program. It returns how the read was refused if nothing was wrong.
func (rs *readers) read(ctx context.Context, w *world, binary string, environment []string, board, period string) (refused string) {
	disturbed := w.disturbed.Load()
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, "top", board, period, "--json")
	cmd.Env = environment
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if errors.Is(ctx.Err(), context.Canceled) {
		return ""
	}
	calm := disturbed%2 == 0 && disturbed == w.disturbed.Load()
	if notThereYet.Match(stderr.Bytes()) {
		err = nil // this is an answer, with exit code 1
	}
	if err == nil {
		if wrong := notABoard(out); wrong != "" {
			rs.note(fmt.Sprintf("consumer top %s %s showed %s:\n%s", board, period, wrong, out))
		}
	}
	rs.mu.Lock()
	defer rs.mu.Unlock()
	switch {
	case err == nil:
		rs.reads.Answered++
	case calm:
		rs.reads.TooSlow++
		return fmt.Sprintf("consumer top %s %s, while nothing was wrong: %v: %s", board, period, err, stderr.Bytes())
	default:
		rs.reads.Refused++
	}
	return ""
}

// notThereYet matches the message that no event of a board has been counted. The state in the JSON may be
// another one: until workers have started, it is behind.
var notThereYet = regexp.MustCompile(`^consumer: (there is no board |no event has been counted in |.* was created meanwhile: )`)

// notABoard describes what is wrong with the top of a board.
func notABoard(out []byte) string {
	var top struct {
		Members   int
		Standings []struct {
			Rank, Points int64
			Member       string
			Fields       map[string]int64 // on boards without points
			ReachedAt    string           `json:"reached_at"`
		}
	}
	if err := json.Unmarshal(out, &top); err != nil {
		return err.Error()
	}
	if len(top.Standings) > 10 || len(top.Standings) < min(10, top.Members) {
		return fmt.Sprintf("%d standings of %d", len(top.Standings), top.Members)
	}
	for i, s := range top.Standings {
		if s.Rank != int64(i+1) {
			return fmt.Sprintf("rank %d at place %d", s.Rank, i+1)
		}
		if i == 0 || s.Fields != nil {
			continue
		}
		above := top.Standings[i-1]
		if s.Points > above.Points || s.Points == above.Points && s.ReachedAt < above.ReachedAt {
			return fmt.Sprintf("%s above %s", above.Member, s.Member)
		}
	}
	return ""
}
