//go:build !nodocker

package containers

// Nothing is left when tests end, however they end: a process of its own waits for
// the end of this one, and removes the containers that are still there.

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
	guardVariable = "STANDINGS_TEST_GUARD"      // set in a guard: whose containers it removes
	guardLabel    = "standings.testenv.process" // on each container: whose it is
)

var guardSession = rand.Text()

// startGuard starts it once, before the first container. It is this program again
// (see init), so that it needs nothing that may be missing, not even a shell. The
// file is kept for this process's end to close it; nothing is ever written.
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
	// Its output isn't ours: go test would wait for whoever still holds that.
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

// guard is the whole life of that process.
func guard(session string) {
	// A Ctrl-C at the terminal is for whom it guards, who may still need servers.
	signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	_, _ = io.Copy(io.Discard, os.Stdin)
	d, err := findDocker()
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	// Twice: one may have been in the making.
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
