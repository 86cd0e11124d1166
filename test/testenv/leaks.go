package testenv

import "go.uber.org/goleak"

// LeakOptions returns goleak's options for a package whose tests use the shared servers. These run until the
// process ends; an embedded server runs inside the process.
func LeakOptions() []goleak.Option {
	running := []string{
		"github.com/standings/standings/internal/embedded/child.(*Process).run",
		"github.com/alicebob/miniredis/v2/server.(*Server).serve",
		"github.com/alicebob/miniredis/v2/server.(*Server).servePeer",
		"github.com/twmb/franz-go/pkg/kfake.(*broker).listen",
		"github.com/twmb/franz-go/pkg/kfake.(*Cluster).run",
		"github.com/twmb/franz-go/pkg/kfake.(*clientConn).read",
		"github.com/twmb/franz-go/pkg/kfake.(*clientConn).write",
		"github.com/twmb/franz-go/pkg/kfake.(*group).manage",
		"github.com/twmb/franz-go/pkg/kfake.(*pids).manage",
	}
	var options []goleak.Option
	for _, function := range running {
		options = append(options, goleak.IgnoreAnyFunction(function))
	}
	return options
}
