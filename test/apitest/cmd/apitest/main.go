// Command apitest serves the API with its fixed standings, runs a command meanwhile, and exits with the command's exit
// code. STANDINGS_URL in the command's environment is the address.
//
//	go run ./test/apitest/cmd/apitest python3 docs/examples/board.py
package main

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"

	"github.com/standings/standings/test/apitest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code, err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "apitest:", err)
	}
	os.Exit(code)
}

func run(ctx context.Context, args []string) (code int, err error) {
	if len(args) == 0 {
		return 2, errors.New("usage: apitest COMMAND [ARGUMENT]…")
	}
	api, err := apitest.New(ctx)
	if err != nil {
		return 1, err
	}
	defer api.Close()
	server := httptest.NewServer(api)
	defer server.Close()
	command := exec.CommandContext(ctx, args[0], args[1:]...)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	command.Env = append(os.Environ(), "STANDINGS_URL="+server.URL)
	err = command.Run()
	if ended, ok := errors.AsType[*exec.ExitError](err); ok {
		return ended.ExitCode(), nil
	}
	if err != nil {
		return 1, err
	}
	return 0, nil
}
