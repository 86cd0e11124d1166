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
		Short: "Ask a running consumer whether it is healthy, or ready",
		Long: `Asks the consumer run or serve of this machine or container, at the port of listen,
for /healthz: whether it works. With --ready it asks for /readyz: whether it does all of
its work, and if not, why. Prints the answer; the exit code is 0 for yes and 1 for no,
or for no answer.`,
		Example: `  consumer healthcheck
  docker exec standings-consumer /consumer healthcheck --ready`,
		Args: cli.ExactArgs(0),
		RunE: func(c *cobra.Command, _ []string) error {
			if timeout <= 0 {
				return cli.Usagef("--timeout has to be above 0")
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
	c.Flags().BoolVar(&ready, "ready", false, "ask for /readyz")
	c.Flags().Var(cli.Duration(&timeout), "timeout", "wait this `time` for the answer")
	return c
}

// healthURL is where a process that listens so can be asked from beside it.
func healthURL(listen, path string) (string, error) {
	if listen == config.Off {
		return "", cli.Usagef("listen is off: there is no port to ask")
	}
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return "", cli.Usagef("listen %s isn't host:port", listen)
	}
	if port == "0" {
		return "", cli.Usagef("listen %s is any free port: only the consumer's log says which", listen)
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
		return fmt.Errorf("%s answers %s", url, response.Status)
	}
	return nil
}

func unanswered(ctx context.Context, url string, err error) error {
	var of *neturl.Error // which says the address again
	if errors.As(err, &of) {
		err = of.Err
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("%s doesn't answer in time: %w", url, err)
	}
	return fmt.Errorf("%s can't be asked: %w", url, err)
}
