// Package healthcheck implements the command healthcheck: it requests a process's health from its
// operations port, for images without curl and a shell.
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

// healthLimit is the maximum size of the response, in bytes. It has a few lines per reason.
const healthLimit = 1 << 20

// Command returns the healthcheck command for a program.
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

// healthURL returns the URL for a process on this machine with this listen address.
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
	// The unspecified address cannot be dialed on every system.
	if ip := net.ParseIP(host); host == "" || ip.IsUnspecified() {
		host = "localhost"
	}
	return "http://" + net.JoinHostPort(host, port) + path, nil
}

// askHealth writes the response to out. Any status other than 200 is an error.
func askHealth(ctx context.Context, url string, out io.Writer) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return cli.Usagef("%w", err)
	}
	// Connect directly: with a proxy or a redirect, another process would answer.
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
	var of *neturl.Error // its text would repeat the URL
	if errors.As(err, &of) {
		err = of.Err
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("%s did not reply in time: %w", url, err)
	}
	return fmt.Errorf("could not request %s: %w", url, err)
}
