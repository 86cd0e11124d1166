package main

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/standings/standings/internal/config"
)

// pod is a pod in the manifests of deploy/.
type pod struct {
	Metadata struct{ Labels map[string]string }
	Spec     struct {
		SecurityContext map[string]any   `yaml:"securityContext"`
		Spread          []map[string]any `yaml:"topologySpreadConstraints"`
		Grace           int              `yaml:"terminationGracePeriodSeconds"`
		Containers      []container
		Volumes         []map[string]any
	}
}

// container is a container of a pod.
type container struct {
	Args  []string
	Env   []struct{ Name, Value string }
	Ports []struct {
		Name          string
		ContainerPort int `yaml:"containerPort"`
	}
	LivenessProbe   map[string]any   `yaml:"livenessProbe"`
	ReadinessProbe  map[string]any   `yaml:"readinessProbe"`
	SecurityContext map[string]any   `yaml:"securityContext"`
	VolumeMounts    []map[string]any `yaml:"volumeMounts"`
	Lifecycle       struct {
		PreStop struct{ Sleep struct{ Seconds int } } `yaml:"preStop"`
	}
}

// objectOf parses the object of a kind and name in a manifest into into.
func objectOf(t *testing.T, path, kind, name string, into any) {
	t.Helper()
	text, err := os.ReadFile("../../deploy/" + path)
	if err != nil {
		t.Fatal(err)
	}
	for part := yaml.NewDecoder(strings.NewReader(string(text))); ; {
		var node yaml.Node
		if err := part.Decode(&node); err != nil {
			t.Fatalf("%s has no %s %s: %v", path, kind, name, err)
		}
		var object struct {
			Kind     string
			Metadata struct{ Name string }
		}
		if err := node.Decode(&object); err != nil {
			t.Fatal(err)
		}
		if object.Kind == kind && object.Metadata.Name == name {
			if err := node.Decode(into); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
}

// podOf returns the pod template of an object.
func podOf(t *testing.T, path, kind, name string) pod {
	t.Helper()
	var object struct{ Spec struct{ Template pod } }
	objectOf(t, path, kind, name, &object)
	return object.Spec.Template
}

// consumerPod returns the pod of consumers.
func consumerPod(t *testing.T) pod {
	t.Helper()
	return podOf(t, "kubernetes.yaml", "Deployment", "standings")
}

// nameLabel is the label by which selectors choose pods.
const nameLabel = "app.kubernetes.io/name"

// No manifest contains a password, which an operator could fill in and forget. Images are pinned to a
// version by a variable.
func TestTheManifestsHoldNoSecretAndPinWhatRuns(t *testing.T) {
	for _, path := range []string{"kubernetes.yaml", "kubernetes-rebuild.yaml"} {
		text, err := os.ReadFile("../../deploy/" + path)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "kind: Secret\n") || strings.Count(string(text), "image: ") != strings.Count(string(text), "image: ${IMAGE}") {
			t.Error(path)
		}
	}
}

// The Job needs the same settings as the consumers; otherwise it reads other settings, or cannot start.
func TestTheManifestOfARebuildIsTheConsumersWithAnotherCommand(t *testing.T) {
	consumer := consumerPod(t)
	rebuild := podOf(t, "kubernetes-rebuild.yaml", "Job", "") // each Job gets a name of its own
	if label := rebuild.Metadata.Labels[nameLabel]; label == "" || label == consumer.Metadata.Labels[nameLabel] {
		t.Errorf("%s %q: the Deployment and the disruption budget would count the Job's pod", nameLabel, label)
	}
	for _, p := range []*pod{&consumer, &rebuild} {
		c := &p.Spec.Containers[0]
		if code, _, stderr := execute(t, nil, append(c.Args, "--help")...); code != 0 {
			t.Errorf("%v: exit code %d: %s", c.Args, code, stderr)
		}
		c.Args, p.Metadata.Labels, p.Spec.Spread = nil, nil, nil                    // a Job has one pod,
		p.Spec.Grace, c.Ports, c.LivenessProbe, c.ReadinessProbe = 0, nil, nil, nil // and serves nothing
	}
	if !reflect.DeepEqual(consumer, rebuild) {
		t.Errorf("%+v\n%+v", consumer, rebuild)
	}
}

// The API's pods are like the consumers' with another command. They listen on the ports that the probes and
// the Service use, have a reader's rights, and use only settings that exist.
func TestTheManifestOfTheAPIServesWhatItsServiceReaches(t *testing.T) {
	consumer, reader := consumerPod(t), podOf(t, "kubernetes.yaml", "Deployment", "standings-api")
	c := reader.Spec.Containers[0]
	if code, _, stderr := execute(t, nil, append(c.Args, "--help")...); code != 0 || c.Args[0] != "serve" {
		t.Errorf("%v: exit code %d: %s", c.Args, code, stderr)
	}
	if same := consumer.Spec.Containers[0]; !reflect.DeepEqual(c.LivenessProbe, same.LivenessProbe) ||
		!reflect.DeepEqual(c.ReadinessProbe, same.ReadinessProbe) || !reflect.DeepEqual(c.SecurityContext, same.SecurityContext) ||
		!reflect.DeepEqual(reader.Spec.SecurityContext, consumer.Spec.SecurityContext) {
		t.Errorf("%+v\n%+v", c, same)
	}
	var environ []string
	for _, e := range c.Env {
		if strings.HasSuffix(e.Name, "_FILE") && !slices.ContainsFunc(c.VolumeMounts, func(m map[string]any) bool {
			return filepath.Dir(e.Value) == m["mountPath"] && m["subPath"] == nil // else not renewed with its Secret
		}) {
			t.Errorf("%s is %s, and nothing is mounted there", e.Name, e.Value)
		}
		if !strings.HasSuffix(e.Name, "PASSWORD_FILE") { // password files are read with the configuration
			environ = append(environ, e.Name+"="+e.Value)
		}
	}
	var all struct{ Data map[string]string }
	objectOf(t, "kubernetes.yaml", "ConfigMap", "standings", &all)
	cfg := filepath.Join(t.TempDir(), "standings.yaml")
	// The mounted files do not exist here.
	text := regexp.MustCompile(`(?m)^ *(tls|password_file):.*\n`).ReplaceAllString(all.Data["standings.yaml"], "")
	if err := os.WriteFile(cfg, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := config.Load(cfg, environ)
	if err != nil {
		t.Fatal(err)
	}
	if l.Config.Redis.Username != "boards" || l.Config.API.TokensFile == "" {
		t.Errorf("a reader goes to Redis as %s, and its tokens are %q", l.Config.Redis.Username, l.Config.API.TokensFile)
	}
	if end := time.Duration(c.Lifecycle.PreStop.Sleep.Seconds)*time.Second + l.Config.ShutdownTimeout; time.Duration(reader.Spec.Grace)*time.Second <= end {
		t.Errorf("an end takes up to %v, and is given %d s", end, reader.Spec.Grace)
	}
	ports := map[string]string{}
	for _, p := range c.Ports {
		ports[p.Name] = fmt.Sprintf(":%d", p.ContainerPort)
	}
	var service struct {
		Spec struct {
			Selector map[string]string
			Ports    []struct {
				TargetPort string `yaml:"targetPort"`
			}
		}
	}
	objectOf(t, "kubernetes.yaml", "Service", "standings-api", &service)
	if s := service.Spec; !reflect.DeepEqual(s.Selector, reader.Metadata.Labels) || len(s.Ports) != 1 || ports[s.Ports[0].TargetPort] != l.Config.API.Listen {
		t.Errorf("the Service %+v doesn't reach %s of %v", s, l.Config.API.Listen, reader.Metadata.Labels)
	}
	if ports["ops"] != l.Config.Listen {
		t.Errorf("probes ask %s, and %s answers", ports["ops"], l.Config.Listen)
	}
}

// directives returns the directives of a systemd unit, including those that are commented out.
func directives(t *testing.T, unit string) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("../../deploy/" + unit)
	if err != nil {
		t.Fatal(err)
	}
	set := map[string][]string{}
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "#"), "="); ok && !strings.Contains(key, " ") {
			set[key] = append(set[key], value)
		}
	}
	return set
}

// The API's process is confined like a consumer's, and its unit uses only settings that exist.
func TestTheUnitOfTheAPIIsConfinedAsTheConsumers(t *testing.T) {
	consumer, reader := directives(t, "standings.service"), directives(t, "standings-api.service")
	args := strings.Fields(reader["ExecStart"][0])
	if code, _, stderr := execute(t, nil, append(args[1:], "--help")...); code != 0 || args[1] != "serve" {
		t.Errorf("%v: exit code %d: %s", args, code, stderr)
	}
	var environ []string
	for _, e := range reader["Environment"] {
		if !strings.Contains(e, "%d/") { // a file that systemd creates
			environ = append(environ, e)
		}
	}
	if l, err := config.Load("", environ); err != nil || l.Config.API.Listen == config.Off {
		t.Errorf("%v: %v", environ, err)
	}
	for _, own := range []string{"Description", "ExecStart", "Environment", "LoadCredential", "SupplementaryGroups", "MemoryMax"} {
		delete(consumer, own)
		delete(reader, own)
	}
	if !reflect.DeepEqual(consumer, reader) {
		t.Errorf("%v\n%v", consumer, reader)
	}
}
