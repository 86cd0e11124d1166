// Package healthcheck is the command healthcheck: it asks the operations port how a process
// does, for images that have no curl and no shell.
package healthcheck

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	neturl "net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/internal/config"
)

// healthLimit bounds the answer, which is a few lines a reason, in bytes.
const healthLimit = 1 << 20

// Command is the command, for a program.
func Command(p *cli.Program) *cobra.Command {
	var ready bool
	timeout := 3 * time.Second
	c := &cobra.Command{
		Use:   "healthcheck",
		Short: "Check the health of a running consumer",
		Long: `Requests /healthz of the consumer on this machine or in this container, on the port of
listen; with --ready, /readyz. Prints the response. The exit code is 0 if it is healthy or
ready, otherwise 1.`,
		Example: `  consumer healthcheck
  docker exec standings-consumer /consumer healthcheck --ready`,
		Args: cli.ExactArgs(0),
		RunE: func(c *cobra.Command, _ []string) error {
			if timeout <= 0 {
				return cli.Usagef("--timeout must be above 0")
			}
			l, err := p.Configuration()
			if err != nil {
				return err
			}
			path := "/healthz"
			if ready {
				path = "/readyz"
			}
			url, err := healthURL(l.Config.Listen, path)
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(c.Context(), timeout)
			defer cancel()
			return askHealth(ctx, url, p.Stdout)
		},
	}
	c.Flags().BoolVar(&ready, "ready", false, "request /readyz")
	c.Flags().Var(cli.Duration(&timeout), "timeout", "maximum `time` to wait for the response")
	return c
}

// healthURL is where a process that listens so can be asked from beside it.
func healthURL(listen, path string) (string, error) {
	if listen == config.Off {
		return "", cli.Usagef("listen is off: there is no port to request")
	}
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return "", cli.Usagef("listen %s must be host:port", listen)
	}
	if port == "0" {
		return "", cli.Usagef("listen %s is any free port: see the consumer's log for the port", listen)
	}
	// All addresses are no address that can be dialed everywhere.
	if ip := net.ParseIP(host); host == "" || ip.IsUnspecified() {
		host = "localhost"
	}
	return "http://" + net.JoinHostPort(host, port) + path, nil
}

// askHealth writes the answer to out. Anything but 200 is an error.
func askHealth(ctx context.Context, url string, out io.Writer) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return cli.Usagef("%w", err)
	}
	// Straight there: a proxy, or a redirect, would answer for somebody else.
	client := http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	response, err := client.Do(request)
	if err != nil {
		return unanswered(ctx, url, err)
	}
	defer func() { _ = response.Body.Close() }()
	if _, err := io.Copy(out, io.LimitReader(response.Body, healthLimit)); err != nil {
		return unanswered(ctx, url, err)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s returned %s", url, response.Status)
	}
	return nil
}

func unanswered(ctx context.Context, url string, err error) error {
	var of *neturl.Error // which says the address again
	if errors.As(err, &of) {
		err = of.Err
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("%s did not reply in time: %w", url, err)
	}
	return fmt.Errorf("could not request %s: %w", url, err)
}
