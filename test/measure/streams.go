package main

// What streams cost: many clients of one board, which changes ten times a second, on a server that
// does nothing else; and how long a record takes to each of them.

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	streamsFor  = 30 * time.Second // how long each of the two is measured
	updatesASec = 10
)

// streams opens so many streams of the top ten, and measures the server while nothing happens and
// while the board changes.
func (m *measurement) streams(ctx context.Context, clients int) error {
	counting, err := m.start(ctx)
	if err != nil {
		return err
	}
	sending, err := kgo.NewClient(append(m.client.Opts(), kgo.ProducerLinger(0))...)
	if err != nil {
		return fmt.Errorf("connect to Kafka: %w", err)
	}
	defer sending.Close()
	records := &played{client: sending}
	if err := m.play(ctx, records, 100, false); err != nil {
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
		return err == nil, nil // it isn't up yet
	}); err != nil {
		return err
	}
	alone := p.kilobytes()
	var events atomic.Int64
	watchers := make([]*watcher, clients)
	for i := range watchers {
		if watchers[i], err = openStream(ctx, api, &events, records); err != nil {
			return err
		}
		defer watchers[i].conn.Close() //nolint:errcheck // it is only read
	}
	if err := until(ctx, func() (bool, error) {
		return events.Load() >= int64(clients), nil // each has the first event
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
		if moving {
			for time.Since(began) < streamsFor {
				if err := m.play(ctx, records, 1, true); err != nil {
					return err
				}
				// Uneven, so that records don't keep step with the server's reads.
				time.Sleep(time.Second/(2*updatesASec) + rand.N(time.Second/updatesASec))
			}
		} else {
			time.Sleep(streamsFor)
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
	if err := records.report(ctx, watchers); err != nil {
		return err
	}
	fmt.Printf("memory                 %s at most\n", p.status("VmHWM"))
	began := time.Now()
	if err := p.stop(); err != nil {
		return err
	}
	fmt.Printf("end                    %v with all streams open\n", time.Since(began).Round(time.Millisecond))
	return counting.stop()
}

// played are the records of the ten members, for those who watch to find theirs by its sum. A
// member's records have a key, so that they count in order.
type played struct {
	client *kgo.Client // sends at once: by default it waits for more to send

	mu   sync.Mutex
	sums [10]int64
	sent [10][]sentRecord
}

// sentRecord is shown once its member has so many points.
type sentRecord struct {
	sum  int64
	at   time.Time // when it was given to the producer
	took time.Duration
}

const playerPrefix = `"member":"player-0`

// play publishes so many events of ten members: each changes the top ten. The last one is noted if
// it is to be looked for.
func (m *measurement) play(ctx context.Context, p *played, n int, noted bool) error {
	var all []*kgo.Record
	player := 0
	p.mu.Lock()
	for range n {
		player = rand.IntN(10)
		points := 1 + rand.IntN(200)
		p.sums[player] += int64(points)
		all = append(all, &kgo.Record{Key: fmt.Append(nil, player), Value: fmt.Appendf(nil, `{"user_id":"player-%02d","points":%d}`, player, points)})
	}
	at := time.Now()
	if noted { // before it is sent: it may be shown before it is acknowledged
		p.sent[player] = append(p.sent[player], sentRecord{sum: p.sums[player], at: at})
	}
	last := len(p.sent[player]) - 1
	p.mu.Unlock()
	if err := p.client.ProduceSync(ctx, all...).FirstErr(); err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	if noted {
		p.mu.Lock()
		p.sent[player][last].took = time.Since(at)
		p.mu.Unlock()
	}
	return nil
}

// watcher is a stream's client: it counts events, and notes when each record is shown.
type watcher struct {
	conn   net.Conn
	events *atomic.Int64
	played *played

	mu    sync.Mutex // guards what follows, which is read when all is through
	next  [10]int    // of each member's records the first that isn't shown yet
	shown [10][]time.Time
}

// openStream opens one.
func openStream(ctx context.Context, address string, events *atomic.Int64, p *played) (*watcher, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("open a stream: %w", err)
	}
	if _, err := io.WriteString(conn, "GET /v1/boards/global/periods/weekly/windows/current/stream?limit=10 HTTP/1.1\r\nHost: api\r\n\r\n"); err != nil {
		return nil, fmt.Errorf("open a stream: %w", err)
	}
	w := &watcher{conn: conn, events: events, played: p}
	go w.run()
	return w, nil
}

// run reads until the connection ends.
func (w *watcher) run() {
	in := bufio.NewReader(w.conn)
	answer, err := http.ReadResponse(in, nil)
	if err != nil || answer.StatusCode != http.StatusOK {
		return // whoever waits for its first event finds out
	}
	defer answer.Body.Close() //nolint:errcheck // it is only read
	for body := bufio.NewReaderSize(answer.Body, 16<<10); ; {
		text, err := body.ReadSlice('\n') // an event's data is less than its buffer
		if err != nil {
			return
		}
		if data, ok := bytes.CutPrefix(text, []byte("data: ")); ok {
			w.take(data, time.Now())
			w.events.Add(1)
		}
	}
}

// take notes the records that an event shows.
func (w *watcher) take(data []byte, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		_, rest, ok := bytes.Cut(data, []byte(playerPrefix))
		if !ok {
			return
		}
		data = rest
		_, points, ok := bytes.Cut(rest, []byte(`"points":`))
		if !ok {
			return
		}
		player, sum := int(rest[0]-'0'), int64(0)
		for _, c := range points {
			if c < '0' || c > '9' {
				break
			}
			sum = 10*sum + int64(c-'0')
		}
		w.played.mu.Lock()
		for sent := w.played.sent[player]; w.next[player] < len(sent) && sent[w.next[player]].sum <= sum; w.next[player]++ {
			w.shown[player] = append(w.shown[player], now)
		}
		w.played.mu.Unlock()
	}
}

// delays are those of all records to all clients, in order, and how many weren't shown.
func (p *played) delays(all []*watcher) (fromSending, fromAcknowledgement []time.Duration, missing int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range all {
		w.mu.Lock()
		for player := range p.sent {
			missing += len(p.sent[player]) - len(w.shown[player])
			for i, at := range w.shown[player] {
				r := &p.sent[player][i]
				fromSending = append(fromSending, at.Sub(r.at))
				fromAcknowledgement = append(fromAcknowledgement, at.Sub(r.at.Add(r.took)))
			}
		}
		w.mu.Unlock()
	}
	slices.Sort(fromSending)
	slices.Sort(fromAcknowledgement)
	return fromSending, fromAcknowledgement, missing
}

// report prints them.
func (p *played) report(ctx context.Context, all []*watcher) error {
	var sending, acknowledged []time.Duration
	missing := 0
	within, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	// Those of the last records may be under way.
	if err := until(within, func() (bool, error) {
		sending, acknowledged, missing = p.delays(all)
		return missing == 0, nil
	}); err != nil && ctx.Err() != nil {
		return err
	}
	records := 0
	for i := range p.sent {
		records += len(p.sent[i])
	}
	fmt.Printf("record to a client     %d records to %d clients each, %d of them not shown; produced one by one with acks=all and without linger, by the clock of the process that produces and has the clients\n", records, len(all), missing)
	if len(sending) == 0 {
		return nil
	}
	for _, line := range []struct {
		from string
		all  []time.Duration
	}{{"sending", sending}, {"acknowledgement", acknowledged}} {
		fmt.Printf("  from %-16s p50 %v, p99 %v, at most %v\n", line.from, ms(quantile(line.all, 50)), ms(quantile(line.all, 99)), ms(line.all[len(line.all)-1]))
	}
	return nil
}

func ms(d time.Duration) time.Duration { return d.Round(100 * time.Microsecond) }

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

// metric is one without labels.
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

// freePorts are two that nobody listens on right now.
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

// kilobytes is the resident memory, in KiB.
func (p *process) kilobytes() int {
	n, _ := strconv.Atoi(strings.TrimSuffix(p.status("VmRSS"), " kB")) // the kernel's format
	return n
}
