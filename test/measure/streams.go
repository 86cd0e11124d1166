package main

// The cost of streams: many clients of one board that changes ten times a second, on a server that does nothing
// else.

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	streamsFor  = 30 * time.Second // duration of each of the two measurements
	updatesASec = 10
)

// streams opens the given number of streams of the top ten, and measures the server while the board does not change
// and while it changes.
func (m *measurement) streams(ctx context.Context, clients int) error {
	counting, err := m.start(ctx)
	if err != nil {
		return err
	}
	if err := m.play(ctx, 100); err != nil {
		return err
	}
	if err := m.caughtUp(ctx); err != nil {
		return err
	}
	api, operations, err := freePorts(ctx)
	if err != nil {
		return err
	}
	p, err := m.command(ctx, "serve", "STANDINGS_API_LISTEN="+api, "STANDINGS_LISTEN="+operations, "STANDINGS_API_STREAMS="+strconv.Itoa(2*clients))
	if err != nil {
		return err
	}
	if err := until(ctx, func() (bool, error) {
		_, err := metric(ctx, operations, "standings_api_streams")
		return err == nil, nil // an error means that it is not up yet
	}); err != nil {
		return err
	}
	alone := p.kilobytes()
	var events atomic.Int64
	for range clients {
		conn, err := openStream(ctx, api, &events)
		if err != nil {
			return err
		}
		defer conn.Close() //nolint:errcheck // it is only read
	}
	if err := until(ctx, func() (bool, error) {
		return events.Load() >= int64(clients), nil // each client has the first event
	}); err != nil {
		return err
	}
	fmt.Printf("memory                 %d KiB without clients, %d KiB with %d: %d KiB a client\n", alone, p.kilobytes(), clients, (p.kilobytes()-alone)/clients)
	for _, moving := range []bool{false, true} {
		before, err := m.streamFigures(ctx, p, operations, &events)
		if err != nil {
			return err
		}
		began := time.Now()
		for time.Since(began) < streamsFor {
			if moving {
				if err := m.play(ctx, 1); err != nil {
					return err
				}
			}
			// The pauses are irregular, so that events do not synchronize with the server's reads.
			time.Sleep(time.Second/(2*updatesASec) + rand.N(time.Second/updatesASec))
		}
		seconds := time.Since(began).Seconds()
		after, err := m.streamFigures(ctx, p, operations, &events)
		if err != nil {
			return err
		}
		what, events, cpu := "a board at rest", after.events-before.events, after.cpu-before.cpu
		if moving {
			what = fmt.Sprintf("%d updates a second", updatesASec)
		}
		fmt.Printf("%-22s %.1f reads of Redis a second, %.1f events a second and client, %.2f of a core, Redis %.3f of a core with the ingestion\n", what,
			(after.reads-before.reads)/seconds, events/seconds/float64(clients), cpu/seconds, (after.redis-before.redis)/seconds)
		if events > 0 {
			fmt.Printf("processor time         %.1f µs an event of a client\n", 1e6*cpu/events)
		}
	}
	fmt.Printf("memory                 %s at most\n", p.status("VmHWM"))
	began := time.Now()
	if err := p.stop(); err != nil {
		return err
	}
	fmt.Printf("end                    %v with all streams open\n", time.Since(began).Round(time.Millisecond))
	return counting.stop()
}

// play publishes n events of ten members: each changes the top ten.
func (m *measurement) play(ctx context.Context, n int) error {
	var all []*kgo.Record
	for range n {
		all = append(all, &kgo.Record{Value: fmt.Appendf(nil, `{"user_id":"player-%02d","points":%d}`, rand.IntN(10), 1+rand.IntN(200))})
	}
	if err := m.client.ProduceSync(ctx, all...).FirstErr(); err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	return nil
}

// openStream opens a stream, and counts its events until the connection ends.
func openStream(ctx context.Context, address string, events *atomic.Int64) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("open a stream: %w", err)
	}
	if _, err := io.WriteString(conn, "GET /v1/boards/global/periods/weekly/windows/current/stream?limit=10 HTTP/1.1\r\nHost: api\r\n\r\n"); err != nil {
		return nil, fmt.Errorf("open a stream: %w", err)
	}
	go func() {
		for lines := bufio.NewScanner(conn); lines.Scan(); {
			if strings.HasPrefix(lines.Text(), "data: ") {
				events.Add(1)
			}
		}
	}()
	return conn, nil
}

type streamFigures struct{ reads, events, cpu, redis float64 }

func (m *measurement) streamFigures(ctx context.Context, p *process, operations string, events *atomic.Int64) (f streamFigures, err error) {
	if f.reads, err = metric(ctx, operations, "standings_api_stream_reads_total"); err != nil {
		return f, err
	}
	if f.redis, err = m.redisCPU(ctx); err != nil {
		return f, err
	}
	f.events, f.cpu = float64(events.Load()), p.usage()
	return f, nil
}

// metric reads a metric without labels.
func metric(ctx context.Context, operations, name string) (float64, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+operations+"/metrics", nil)
	if err != nil {
		return 0, fmt.Errorf("read metrics: %w", err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, fmt.Errorf("read metrics: %w", err)
	}
	text, err := io.ReadAll(answer.Body)
	if err := errors.Join(err, answer.Body.Close()); err != nil {
		return 0, fmt.Errorf("read metrics: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			return strconv.ParseFloat(strings.TrimSpace(value), 64)
		}
	}
	return 0, fmt.Errorf("there is no metric %s", name)
}

// freePorts returns two ports that are free at the moment.
func freePorts(ctx context.Context) (one, other string, err error) {
	var all [2]string
	for i := range all {
		var l net.ListenConfig
		listener, err := l.Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return "", "", fmt.Errorf("find a free port: %w", err)
		}
		defer listener.Close() //nolint:errcheck // it was only to be found
		all[i] = listener.Addr().String()
	}
	return all[0], all[1], nil
}

// kilobytes returns the resident memory, in KiB.
func (p *process) kilobytes() int {
	n, _ := strconv.Atoi(strings.TrimSuffix(p.status("VmRSS"), " kB")) // the kernel's format
	return n
}
