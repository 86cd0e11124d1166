package rediskinds

// Recovery from Redis's own backups, with the commands of docs/recovery.md: backups are taken under traffic, all
// servers are killed and lose their data, and the restored standings are compared with the oracle.

import (
	"context"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/standings/standings/test/harness"
	"github.com/standings/standings/test/testenv"
)

// documented runs the named command of docs/recovery.md, and returns its output. Entries of environment have the
// form KEY=value.
func documented(t *testing.T, name string, environment []string) string {
	t.Helper()
	if _, err := exec.LookPath("redis-cli"); err != nil {
		testenv.NotRun(t, "it needs redis-cli")
	}
	page, err := os.ReadFile("../../docs/recovery.md")
	harness.Must(t, err)
	block := regexp.MustCompile("(?ms)^ *```sh " + name + "\n(.*?)^ *```$").FindSubmatch(page)
	if block == nil {
		t.Fatalf("docs/recovery.md has no command %q", name)
	}
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-eu", "-c", string(block[1]))
	cmd.Env = append(os.Environ(), environment...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("the command %q of docs/recovery.md: %v\n%s%s", name, err, block[1], out)
	}
	return string(out)
}

// stored is a server with its data directory and its backup directory.
type stored struct {
	*testenv.RedisServer

	data, backup string
}

func newStored(t *testing.T, server *testenv.RedisServer) stored {
	t.Helper()
	dir, err := server.Client(t).ConfigGet(t.Context(), "dir").Result()
	harness.Must(t, err)
	return stored{server, dir["dir"], t.TempDir()}
}

func (s stored) run(t *testing.T, name string, more ...string) {
	t.Helper()
	host, port, _ := net.SplitHostPort(s.Addr())
	documented(t, name, append(more, "HOST="+host, "PORT="+port, "DATA="+s.data, "BACKUP="+s.backup))
}

// lose kills servers, and deletes their data.
func lose(t *testing.T, all ...stored) {
	t.Helper()
	for _, s := range all {
		s.Kill()
	}
	for _, s := range all {
		files, err := filepath.Glob(filepath.Join(s.data, "*"))
		harness.Must(t, err)
		for _, file := range files {
			harness.Must(t, os.RemoveAll(file))
		}
	}
}

// recovers runs a consumer under continuous traffic through a backup, the loss of all servers, and a restore. The log
// then loses all records before the backup, so that only the backup contains them.
func recovers(t *testing.T, place *harness.Place, backUp, lose, restore func()) {
	t.Helper()
	place.Start(t)
	stop := place.Traffic(t, 2).Stop
	place.AwaitBegun(t, within)
	counts(t, place)
	backUp()
	counts(t, place)
	lost := place.Counting(t)
	lose()
	place.TerminateAll(t)

	restore()
	restored := place.Ledger(t)
	t.Logf("the ledger is back at %v, and had come past %d offsets", restored, lost)
	if at := place.Counting(t); at == 0 || at >= lost {
		t.Errorf("the restored ledger has come past %d offsets, and the lost one past %d", at, lost)
	}
	for partition := range place.Ends(t) {
		text, _, _ := strings.Cut(restored[partition], "..")
		from, err := strconv.ParseInt(text, 10, 64)
		harness.Must(t, err)
		place.DeleteBefore(t, partition, from)
	}
	place.Start(t)
	counts(t, place)
	stop()
	place.AwaitCaughtUp(t, within)
	programs := t.TempDir()
	harness.Must(t, os.Symlink(harness.Binary(t), filepath.Join(programs, "consumer")))
	path := "PATH=" + programs + ":" + os.Getenv("PATH")
	if out := documented(t, "check", append(place.Environment(nil), path)); !strings.Contains(out, "would work") {
		t.Errorf("consumer check isn't content:\n%s", out)
	}
	place.Finish(t)
}

// counts waits until a thousand more events count.
func counts(t *testing.T, place *harness.Place) {
	t.Helper()
	until := place.Counting(t) + 1000
	place.Eventually(t, within, func() string {
		if at := place.Counting(t); at < until {
			return fmt.Sprintf("the ledger has come past %d offsets of %d", at, until)
		}
		return ""
	})
}

func TestASingleServerIsRestoredFromItsBackup(t *testing.T) {
	t.Parallel()
	conf := "CONF=" + filepath.Join(t.TempDir(), "redis.conf")
	harness.Must(t, os.WriteFile(conf[len("CONF="):], []byte("appendonly yes\n"), 0o600))
	s := newStored(t, testenv.LocalRedis(t, "--include", conf[len("CONF="):]))
	place := newPlace(t, s.Client(t), map[string]string{"redis.addresses": s.Addr()})
	recovers(t, place, func() { s.run(t, "backup") }, func() { lose(t, s) }, func() {
		s.run(t, "copy")
		s.run(t, "aof-off", conf)
		s.Start()
		s.run(t, "loaded")
		s.run(t, "aof-on", conf)
		// From here on the AOF is complete.
		before := place.Ledger(t)
		s.Kill()
		s.Start()
		if after := place.Ledger(t); !maps.Equal(before, after) {
			t.Errorf("the AOF has the ledger %v, want %v", after, before)
		}
	})
}

func TestAMasterThatSentinelsWatchIsRestoredFromItsBackup(t *testing.T) {
	t.Parallel()
	watching := newSentinels(t, 3, "")
	all := map[string]stored{}
	for address, server := range watching.servers {
		all[address] = newStored(t, server)
	}
	restored, _ := watching.master(t)
	backup := all[restored.Addr()].backup
	place := newPlace(t, watching.look(t), watching.settings(t))
	recovers(t, place, func() { all[restored.Addr()].run(t, "backup") }, func() { lose(t, slices.Collect(maps.Values(all))...) }, func() {
		sentinel := func(address string) []string {
			host, port, _ := net.SplitHostPort(address)
			return []string{"SENTINEL_HOST=" + host, "SENTINEL_PORT=" + port, "MASTER=" + watched}
		}
		address := strings.Join(strings.Fields(documented(t, "master", sentinel(watching.addresses[0]))), ":")
		master, ok := all[address]
		if !ok {
			t.Fatalf("the Sentinel names %q", address)
		}
		delete(all, address)
		master.backup = backup
		master.run(t, "copy")
		master.Start()
		master.run(t, "loaded")
		for _, address := range watching.addresses {
			documented(t, "seen", sentinel(address))
		}
		for _, other := range all {
			other.Start()
			followed(t, master.RedisServer, other.RedisServer)
		}
	})
}

func TestMastersOfAClusterAreRestoredFromBackupsOfDifferentMoments(t *testing.T) {
	t.Parallel()
	c := harness.StartCluster(t)
	var all []stored
	for _, n := range c.All() {
		all = append(all, newStored(t, n.RedisServer))
	}
	masters, replica := all[:3], all[3]
	place := newPlace(t, c.Look(t), map[string]string{"redis.addresses": strings.Join(c.Addresses(), ","), "redis.shards": "6"})
	recovers(t, place, func() {
		for _, s := range all {
			s.run(t, "nodes")
		}
		for _, s := range masters {
			s.run(t, "backup")
			counts(t, place)
		}
	}, func() { lose(t, all...) }, func() {
		for _, s := range all {
			s.run(t, "copy")
		}
		for _, s := range masters {
			s.Start()
			s.run(t, "loaded")
		}
		for _, s := range masters {
			s.run(t, "ok")
		}
		replica.Start()
		c.Replica.Await(t, "info replication", func(info string) bool { return strings.Contains(info, "master_link_status:up") })
		ledgers := map[string]bool{}
		for shard := range place.Shards() {
			ledger, err := place.RedisClient().HGetAll(t.Context(), place.KeyIn(shard, "ledger")).Result()
			harness.Must(t, err)
			ledgers[fmt.Sprint(ledger)] = true
		}
		if len(ledgers) < len(masters) {
			t.Errorf("the masters' backups are of one moment: %v", ledgers)
		}
	})
}
