//go:build !nodocker

package containers

// The connection to the Docker daemon.

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

// docker is a connection to a daemon that answers.
type docker struct {
	provider *testcontainers.DockerProvider
	host     string     // the host at which its published ports are reachable
	publish  netip.Addr // the address of the daemon's machine on which they are published
}

// daemonAnswers limits the search for a daemon, which may be an unreachable remote one.
const daemonAnswers = 10 * time.Second

// findDocker looks for a daemon once per process.
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
	// Ryuk, its cleaner, is a container of another image. guard.go uses a process instead.
	if err := os.Setenv("TESTCONTAINERS_RYUK_DISABLED", "true"); err != nil {
		return nil, err
	}
	log.SetDefault(log.NewNoopLogger())
	// NewDockerProvider would create a network and leave it behind.
	found, err := testcontainers.ProviderDefault.GetProvider(testcontainers.WithLogger(log.NewNoopLogger()))
	provider, ok := found.(*testcontainers.DockerProvider)
	if err == nil && !ok {
		err = fmt.Errorf("%T isn't Docker", found)
	}
	if err != nil {
		why, _, _ := strings.Cut(err.Error(), "\n") // the first place that it tried
		return nil, fmt.Errorf("no Docker daemon answers (%s): %w", why, errNotHere)
	}
	d := &docker{provider: provider, host: dockerHost(provider.Client().DaemonHost())}
	defer d.idle()
	d.publish = netip.IPv4Unspecified()
	if address, err := netip.ParseAddr(d.host); err == nil {
		d.publish = address // do not publish on all addresses: these servers require no password
	}
	return d, nil
}

// dockerHost returns the name of the daemon's machine: that of a remote daemon, or this one. Tests that run in a
// container themselves must set TESTCONTAINERS_HOST_OVERRIDE.
func dockerHost(daemon string) string {
	if host := os.Getenv("TESTCONTAINERS_HOST_OVERRIDE"); host != "" {
		return host
	}
	if at, err := url.Parse(daemon); err == nil && at.Hostname() != "" && at.Hostname() != "localhost" {
		return at.Hostname()
	}
	return "127.0.0.1"
}

// idle closes the connections that wait for the next call: each has two goroutines.
func (d *docker) idle() { _ = d.provider.Close() }

// image holds the data to start containers of an image.
type image struct {
	docker  *docker
	name    string
	program []string // must precede the options, if the image has no entrypoint
}

// findImage looks for an image. It does not pull images: without a registry the tests would hang, and with one
// they would fill the disk.
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
