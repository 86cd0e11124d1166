//go:build !nodocker

package containers

// The Docker daemon that containers are asked of.

import (
	"context"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/log"
)

// docker is a daemon that answers.
type docker struct {
	provider *testcontainers.DockerProvider
	host     string     // where its published ports are reached
	publish  netip.Addr // the address of its machine that they are published on
}

// daemonAnswers bounds the search for a daemon: a remote one may be away.
const daemonAnswers = 10 * time.Second

// findDocker looks once a process.
var findDocker = sync.OnceValues(func() (*docker, error) {
	type found struct {
		docker *docker
		err    error
	}
	answer := make(chan found, 1)
	go func() {
		d, err := connectDocker()
		answer <- found{d, err}
	}()
	select {
	case f := <-answer:
		return f.docker, f.err
	case <-time.After(daemonAnswers):
		return nil, fmt.Errorf("no Docker daemon answers within %v: %w", daemonAnswers, errNotHere)
	}
})

func connectDocker() (*docker, error) {
	// Its cleaner is a container of yet another image. Ours is a process: guard.go.
	if err := os.Setenv("TESTCONTAINERS_RYUK_DISABLED", "true"); err != nil {
		return nil, err
	}
	log.SetDefault(log.NewNoopLogger())
	// This and not NewDockerProvider, which would make a network and leave it behind.
	found, err := testcontainers.ProviderDefault.GetProvider(testcontainers.WithLogger(log.NewNoopLogger()))
	provider, ok := found.(*testcontainers.DockerProvider)
	if err == nil && !ok {
		err = fmt.Errorf("%T isn't Docker", found)
	}
	if err != nil {
		why, _, _ := strings.Cut(err.Error(), "\n") // the first place that it looked at
		return nil, fmt.Errorf("no Docker daemon answers (%s): %w", why, errNotHere)
	}
	d := &docker{provider: provider, host: dockerHost(provider.Client().DaemonHost())}
	defer d.idle()
	d.publish = netip.IPv4Unspecified()
	if address, err := netip.ParseAddr(d.host); err == nil {
		d.publish = address // not for everybody: these servers ask for no password
	}
	return d, nil
}

// dockerHost is the name of the daemon's machine: this one, unless it is another
// one's. Tests that run in a container themselves have to be told.
func dockerHost(daemon string) string {
	if host := os.Getenv("TESTCONTAINERS_HOST_OVERRIDE"); host != "" {
		return host
	}
	if at, err := url.Parse(daemon); err == nil && at.Hostname() != "" && at.Hostname() != "localhost" {
		return at.Hostname()
	}
	return "127.0.0.1"
}

// idle closes connections that wait for the next call: each is two goroutines.
func (d *docker) idle() { _ = d.provider.Close() }

// image is what a container of an image is started with.
type image struct {
	docker  *docker
	name    string
	program []string // to be named before options, where it has no entrypoint
}

// findImage looks for an image. It pulls none: tests would hang where no registry is, and
// where one is it isn't for them to fill the disk.
func findImage(ctx context.Context, name string) (*image, error) {
	d, err := findDocker()
	if err != nil {
		return nil, err
	}
	defer d.idle()
	ctx, cancel := context.WithTimeout(ctx, daemonAnswers)
	defer cancel()
	has, err := d.provider.Client().ImageInspect(ctx, name)
	if errdefs.IsNotFound(err) {
		return nil, fmt.Errorf("Docker has no image %s (docker pull %s): %w", name, name, errNotHere)
	}
	if err != nil {
		return nil, fmt.Errorf("ask Docker for image %s: %w", name, err)
	}
	i := &image{docker: d, name: name}
	if c := has.Config; c != nil && len(c.Entrypoint) == 0 && len(c.Cmd) > 0 {
		i.program = c.Cmd[:1]
	}
	return i, nil
}
