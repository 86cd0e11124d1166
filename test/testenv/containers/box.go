//go:build !nodocker

package containers

// A server in a container: it is started, stopped, killed and paused, and keeps its data.

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"

	"github.com/standings/standings/internal/embedded/child"
)

// dockerCall limits every call to the daemon except stopping a server.
const dockerCall = 30 * time.Second

// errPortTaken means that another process was first to use a port.
var errPortTaken = errors.New("a port is taken")

// box is a container that publishes a port under the same number inside and outside, so that the server can
// tell its clients its address. The number stays the same over a stop and start.
type box struct {
	docker    *docker
	container testcontainers.Container
	port      int
}

// contents describes a container to create.
type contents struct {
	environment map[string]string
	arguments   []string
	files       []string // of this machine, available in the container under the same path
	ports       []string // additional ports to publish
}

// fill creates a container on a port, or on a free one if port is 0, with the contents for that port. It does not
// start the container.
func fill(ctx context.Context, i *image, port int, what func(port int) contents) (*box, error) {
	_, err := startGuard()
	if err != nil {
		return nil, fmt.Errorf("a process that removes containers: %w", err)
	}
	if port == 0 {
		if port, err = child.FreePort(); err != nil {
			return nil, err
		}
	}
	c := what(port)
	ports := network.PortMap{}
	for _, number := range append(c.ports, strconv.Itoa(port)) {
		inside, err := network.ParsePort(number + "/tcp")
		if err != nil {
			return nil, fmt.Errorf("publish a port of a container: %w", err)
		}
		ports[inside] = []network.PortBinding{{HostIP: i.docker.publish, HostPort: number}}
	}
	request := testcontainers.ContainerRequest{
		Image:              i.name,
		Env:                c.environment,
		Cmd:                c.arguments,
		Labels:             map[string]string{guardLabel: guardSession},
		HostConfigModifier: func(host *container.HostConfig) { host.PortBindings = ports },
	}
	for inside := range ports {
		request.ExposedPorts = append(request.ExposedPorts, inside.String())
	}
	for _, file := range c.files {
		request.Files = append(request.Files, testcontainers.ContainerFile{
			HostFilePath: file, ContainerFilePath: file, FileMode: 0o644,
		})
	}
	defer i.docker.idle()
	made, err := i.docker.provider.CreateContainer(ctx, request)
	b := &box{docker: i.docker, container: made, port: port}
	if err != nil {
		b.remove()
		return nil, fmt.Errorf("make a container of %s: %w", i.name, err)
	}
	return b, nil
}

// hostFiles returns the values that are paths of files on this machine.
func hostFiles(values []string) []string {
	var files []string
	for _, value := range values {
		if !path.IsAbs(value) || slices.Contains(files, value) {
			continue
		}
		if stat, err := os.Stat(value); err == nil && stat.Mode().IsRegular() {
			files = append(files, value)
		}
	}
	return files
}

func (b *box) address() string { return net.JoinHostPort(b.docker.host, strconv.Itoa(b.port)) }

// begin starts a container that was created, stopped or killed, and waits until ready reports that the server
// answers.
func (b *box) begin(ctx context.Context, ready func(context.Context) error) error {
	defer b.docker.idle()
	if err := b.container.Start(ctx); err != nil {
		if text := err.Error(); strings.Contains(text, "already allocated") || strings.Contains(text, "already in use") {
			return fmt.Errorf("%w: %w", errPortTaken, err)
		}
		return err
	}
	var last error
	for {
		if last = ready(ctx); last == nil {
			return nil
		}
		if err := b.ended(ctx); err != nil {
			return fmt.Errorf("%w; its log ends with: %s", err, b.log())
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("it doesn't answer at %s: %w; its log ends with: %s", b.address(), errors.Join(ctx.Err(), last), b.log())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// ended returns an error that describes how the server ended, or nil if it runs.
func (b *box) ended(ctx context.Context) error {
	state, err := b.container.State(ctx)
	if err != nil {
		return fmt.Errorf("look at its container: %w", err)
	}
	if !state.Running {
		return fmt.Errorf("it ended with exit code %d %s", state.ExitCode, state.Error)
	}
	return nil
}

func (b *box) stop() error {
	defer b.docker.idle()
	grace := 20 * time.Second
	ctx, cancel := context.WithTimeout(context.Background(), grace+dockerCall)
	defer cancel()
	return b.container.Stop(ctx, &grace)
}

// call makes one call to the daemon's API about the container.
func (b *box) call(f func(ctx context.Context, api client.APIClient, id string) error) error {
	defer b.docker.idle()
	ctx, cancel := context.WithTimeout(context.Background(), dockerCall)
	defer cancel()
	return f(ctx, b.docker.provider.Client(), b.container.GetContainerID())
}

// kill returns when the server has ended. It is no error if the server had ended before.
func (b *box) kill() error {
	return b.call(func(ctx context.Context, api client.APIClient, id string) error {
		_, err := api.ContainerKill(ctx, id, client.ContainerKillOptions{Signal: "KILL"})
		if err != nil && b.ended(ctx) != nil {
			return nil //nolint:nilerr // it was dead before
		}
		return err
	})
}

// pause and resume may be called twice, like the signals that stop and continue a process.
func (b *box) pause() error {
	return b.call(func(ctx context.Context, api client.APIClient, id string) error {
		return untilFrozen(ctx, func() error {
			_, err := api.ContainerPause(ctx, id, client.ContainerPauseOptions{})
			return b.unless(ctx, err, true)
		})
	})
}

// untilFrozen repeats a pause while runc reports that it could not freeze the container. With version 1 of control
// groups, runc tries for less than half a second, which is too short for a process with many threads on a busy
// machine. It thaws the container before it reports the error.
func untilFrozen(ctx context.Context, pause func() error) error {
	for {
		err := pause()
		if err == nil || !strings.Contains(err.Error(), "unable to freeze") {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (b *box) resume() error {
	return b.call(func(ctx context.Context, api client.APIClient, id string) error {
		_, err := api.ContainerUnpause(ctx, id, client.ContainerUnpauseOptions{})
		return b.unless(ctx, err, false)
	})
}

// unless ignores an error if the container already is in the requested state.
func (b *box) unless(ctx context.Context, err error, paused bool) error {
	if err == nil {
		return nil
	}
	state, unknown := b.container.State(ctx)
	if unknown == nil && state.Paused == paused {
		return nil
	}
	return err
}

// remove ends the server and deletes its data. If that fails, the guard tries again after this process has ended.
func (b *box) remove() {
	if b.container == nil {
		return
	}
	_ = b.call(func(ctx context.Context, api client.APIClient, id string) error {
		_, err := api.ContainerRemove(ctx, id, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
		return err
	})
}

// log returns the end of the server's log.
func (b *box) log() string {
	defer b.docker.idle()
	ctx, cancel := context.WithTimeout(context.Background(), dockerCall)
	defer cancel()
	all, err := b.container.Logs(ctx)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = all.Close() }()
	text, err := io.ReadAll(all)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-20):], "\n")
}

// read returns a file from the container.
func (b *box) read(file string) ([]byte, error) {
	defer b.docker.idle()
	ctx, cancel := context.WithTimeout(context.Background(), dockerCall)
	defer cancel()
	f, err := b.container.CopyFileFromContainer(ctx, file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return io.ReadAll(f)
}

// write writes a file into the container, which may be stopped. If text is nil it creates an empty directory of
// that name.
func (b *box) write(file string, text []byte) error {
	header := &tar.Header{Name: path.Base(file), Mode: 0o755, Typeflag: tar.TypeDir}
	if text != nil {
		header.Mode, header.Typeflag, header.Size = 0o644, tar.TypeReg, int64(len(text))
	}
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	if err := w.WriteHeader(header); err != nil {
		return err
	}
	if _, err := w.Write(text); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return b.call(func(ctx context.Context, api client.APIClient, id string) error {
		_, err := api.CopyToContainer(ctx, id, client.CopyToContainerOptions{DestinationPath: path.Dir(file), Content: &archive})
		return err
	})
}
