package testenv

// A real Kafka as a child process: a node that is broker and controller, or a broker that joins such a node.

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/standings/standings/internal/embedded/child"
)

// logging is the configuration that makes Kafka log warnings and errors to stdout.
//
//go:embed log4j2.properties
var logging []byte

const (
	kafkaStart = 3 * time.Minute // two to three seconds on an idle machine
	kafkaGrace = 20 * time.Second
)

// kafkaProcess is a Kafka on fixed ports with its data in dir.
type kafkaProcess struct {
	java, jars string
	dir        string
	port       int // for clients
	controller int // for the quorum, which has one node
	cluster    string
	config     map[string]string
	joins      *kafkaProcess // the node whose cluster it joins; nil: its own cluster
	number     int           // the node id of a broker that joins, from 2
	process    *child.Process
}

// JavaOptions favour a quick start over peak speed.
var JavaOptions = []string{"-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dfile.encoding=UTF-8"}

func localKafka(ctx context.Context) (*KafkaServer, error) { return newLocalKafka(ctx, nil) }

func newLocalKafka(ctx context.Context, config map[string]string) (*KafkaServer, error) {
	p, err := newKafkaProcess(ctx, config)
	if err != nil {
		return nil, err
	}
	k := newKafka(p.address(), p.name(), Local, p.remove)
	k.private = p
	return k, nil
}

func (k *kafkaProcess) name() string { return "Apache Kafka " + jarsVersion(k.jars) }

func newKafkaProcess(ctx context.Context, config map[string]string) (*kafkaProcess, error) {
	return startKafkaProcess(ctx, kafkaProcess{config: config})
}

// startKafkaProcess starts a Kafka with settings that take precedence over the defaults. It tries other
// ports if another process took one first.
func startKafkaProcess(ctx context.Context, like kafkaProcess) (*kafkaProcess, error) {
	java, jars, err := findKafka()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, kafkaStart)
	defer cancel()
	for {
		k := &like
		k.java, k.jars = java, jars
		if err = k.format(ctx); err == nil {
			err = k.start(ctx)
		}
		if err == nil {
			return k, nil
		}
		k.remove()
		if !errors.Is(err, errPortTaken) || ctx.Err() != nil {
			return nil, fmt.Errorf("start a local Kafka: %w", err)
		}
	}
}

var errPortTaken = errors.New("a port is taken")

// findKafka finds a java and Kafka's jars. It fails if the environment names a directory without jars.
func findKafka() (java, jars string, err error) {
	jars, named := os.Getenv(KafkaJarsVariable), true
	if jars == "" {
		named = false
		if jars, err = cachedJars(); err != nil {
			return "", "", fmt.Errorf("%w: %w", err, errNotHere)
		}
	}
	if jarsVersion(jars) == "" {
		err = fmt.Errorf("no Kafka jars in %s (scripts/kafka-jars %s installs them)", jars, wantedKafka())
		if named {
			return "", "", fmt.Errorf("%s: %w", KafkaJarsVariable, err)
		}
		return "", "", fmt.Errorf("%w: %w", err, errNotHere)
	}
	if java, err = exec.LookPath("java"); err != nil {
		return "", "", fmt.Errorf("no java on the PATH: %w", errNotHere)
	}
	return java, jars, nil
}

// cachedJars returns the directory into which scripts/kafka-jars installs the jars.
func cachedJars() (string, error) {
	cache := os.Getenv("XDG_CACHE_HOME")
	if cache == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		cache = filepath.Join(home, ".cache")
	}
	return filepath.Join(cache, "standings", "kafka-"+wantedKafka()), nil
}

// jarsVersion reads 4.2.0 from kafka-clients-4.2.0.jar; it returns "" if that file is missing.
func jarsVersion(dir string) string {
	found, err := filepath.Glob(filepath.Join(dir, "kafka-clients-*.jar"))
	if err != nil || len(found) == 0 {
		return ""
	}
	name := strings.TrimSuffix(filepath.Base(found[0]), ".jar")
	return strings.TrimPrefix(name, "kafka-clients-")
}

func (k *kafkaProcess) address() string { return fmt.Sprintf("127.0.0.1:%d", k.port) }

// format creates a directory with an empty log and the configuration.
func (k *kafkaProcess) format(ctx context.Context) (err error) {
	if k.dir, err = os.MkdirTemp("", "standings-kafka-"); err != nil {
		return err
	}
	if k.port, err = child.FreePort(); err != nil {
		return err
	}
	if k.controller, err = child.FreePort(); err != nil {
		return err
	}
	if k.cluster = ClusterID(); k.joins != nil {
		k.cluster = k.joins.cluster
	}
	if err := os.WriteFile(k.file("server.properties"), k.properties(), 0o600); err != nil {
		return err
	}
	if err := os.WriteFile(k.file("log4j2.properties"), logging, 0o600); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, k.java, k.arguments("kafka.tools.StorageTool",
		"format", "-t", k.cluster, "-c", k.file("server.properties"))...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("format its storage: %w: %s", err, out)
	}
	return nil
}

func (k *kafkaProcess) file(name string) string { return filepath.Join(k.dir, name) }

func (k *kafkaProcess) arguments(args ...string) []string {
	java := append(slices.Clone(JavaOptions),
		"-Dlog4j2.configurationFile="+k.file("log4j2.properties"), "-cp", filepath.Join(k.jars, "*"))
	return append(java, args...)
}

// properties returns the configuration in the format of Java's property files.
func (k *kafkaProcess) properties() []byte {
	all := KafkaSettings("127.0.0.1", k.address(), fmt.Sprintf("127.0.0.1:%d", k.controller), k.config)
	all["log.dirs"] = k.file("data")
	if k.joins != nil {
		all["process.roles"], all["node.id"] = "broker", strconv.Itoa(k.number)
		all["controller.quorum.voters"] = fmt.Sprintf("1@127.0.0.1:%d", k.joins.controller)
		all["listeners"] = "PLAINTEXT://" + k.address()
	}
	var text strings.Builder
	for _, key := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&text, "%s=%s\n", key, all[key])
	}
	return []byte(text.String())
}

// start starts the broker and returns when it serves clients.
func (k *kafkaProcess) start(ctx context.Context) error {
	log, err := os.OpenFile(k.file("log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // the child has its own descriptor
	cmd := exec.Command(k.java, k.arguments("kafka.Kafka", k.file("server.properties"))...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = k.dir, log, log
	if k.process, err = child.Start(cmd, k.dir); err != nil {
		return err
	}
	if err = k.ready(ctx); err == nil {
		return nil
	}
	k.process.Kill()
	text := child.Tail(log.Name(), 12)
	if strings.Contains(text, "Address already in use") {
		return errPortTaken
	}
	return fmt.Errorf("%w; its log ends with: %s", err, text)
}

// ready waits until the broker answers with the cluster id that it was formatted with. If another process
// took the port first, a different Kafka may answer.
func (k *kafkaProcess) ready(ctx context.Context) error {
	for {
		id, _, err := IdentifyKafka(ctx, k.address())
		if err == nil && id == k.cluster {
			return nil
		}
		select {
		case <-k.process.Done():
			return fmt.Errorf("it ended: %w", errors.Join(k.process.Err(), err))
		case <-ctx.Done():
			return fmt.Errorf("it doesn't answer: %w", errors.Join(ctx.Err(), err))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// remove ends the broker and deletes its data.
func (k *kafkaProcess) remove() {
	if k.process != nil {
		k.process.Kill() // nothing needs to be saved
	}
	if k.dir != "" {
		_ = os.RemoveAll(k.dir) // files left in the temporary directory are harmless
	}
}

func (k *kafkaProcess) stop() error {
	k.process.Stop(kafkaGrace)
	return nil
}

func (k *kafkaProcess) kill() error {
	k.process.Kill()
	return nil
}

func (k *kafkaProcess) pause() error  { return pause(k.process) }
func (k *kafkaProcess) resume() error { return resume(k.process) }
func (k *kafkaProcess) log() string   { return tail(k.file("log")) }
