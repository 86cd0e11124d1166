//go:build !nodocker

package containers

// Tests leave no containers behind, however they end: a separate process waits for the end of this one, and
// removes the containers that still exist.

import (
	"context"
	"crypto/rand"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/moby/moby/client"
)

const (
	guardVariable = "STANDINGS_TEST_GUARD"      // set in a guard: the session whose containers it removes
	guardLabel    = "standings.testenv.process" // on each container: its session
)

var guardSession = rand.Text()

// startGuard starts the guard once, before the first container. The guard is this program again (see init), so
// that it depends on no other program, not even a shell. The returned file stays open until this process
// ends; nothing is written to it.
var startGuard = sync.OnceValues(func() (*os.File, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer func() { _ = read.Close() }()
	// The guard must not inherit this process's output: go test waits until all processes that hold it have ended.
	guard := exec.Command(self)
	guard.Env = append(os.Environ(), guardVariable+"="+guardSession)
	guard.Dir = os.TempDir()
	guard.Stdin = read
	if err := guard.Start(); err != nil {
		_ = write.Close()
		return nil, err
	}
	return write, nil
})

func init() {
	if session := os.Getenv(guardVariable); session != "" {
		guard(session)
		os.Exit(0)
	}
}

// guard is the main function of the guard process.
func guard(session string) {
	// Ctrl-C at the terminal is meant for the guarded process, which may still need its servers.
	signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	_, _ = io.Copy(io.Discard, os.Stdin)
	d, err := findDocker()
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	// Twice, as a container may be in the process of being created.
	for range 2 {
		removeContainers(ctx, d, session)
		time.Sleep(time.Second)
	}
}

func removeContainers(ctx context.Context, d *docker, session string) {
	defer d.idle()
	api := d.provider.Client()
	list, err := api.ContainerList(ctx, client.ContainerListOptions{
		All: true, Filters: make(client.Filters).Add("label", guardLabel+"="+session),
	})
	if err != nil {
		return
	}
	for _, c := range list.Items {
		_, _ = api.ContainerRemove(ctx, c.ID, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
	}
}
