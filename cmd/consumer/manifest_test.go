package main

import (
	"errors"
	"io"
	"os"
	"reflect"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// pod is what the manifests of deploy/ say of a pod.
type pod struct {
	Metadata struct{ Labels map[string]string }
	Spec     struct {
		SecurityContext map[string]any   `yaml:"securityContext"`
		Spread          []map[string]any `yaml:"topologySpreadConstraints"`
		Containers      []struct {
			Image           string
			Args            []string
			SecurityContext map[string]any   `yaml:"securityContext"`
			VolumeMounts    []map[string]any `yaml:"volumeMounts"`
		}
		Volumes []map[string]any
	}
}

// podOf is the pod of the first object of a kind in a manifest.
func podOf(t *testing.T, path, kind string) pod {
	t.Helper()
	text, err := os.ReadFile("../../deploy/" + path)
	if err != nil {
		t.Fatal(err)
	}
	for part := yaml.NewDecoder(strings.NewReader(string(text))); ; {
		var object struct {
			Kind string
			Spec struct{ Template pod }
		}
		if err := part.Decode(&object); err != nil {
			t.Fatalf("%s has no %s: %v", path, kind, err)
		}
		if object.Kind == kind {
			return object.Spec.Template
		}
	}
}

// No password is in a manifest, to be changed there and forgotten; no image is whatever is
// the latest; and nobody but who has to can talk to the pods.
func TestTheManifestsHoldNoSecretAndPinWhatRuns(t *testing.T) {
	kinds := map[string]int{}
	for _, path := range []string{"kubernetes.yaml", "kubernetes-rebuild.yaml"} {
		text, err := os.ReadFile("../../deploy/" + path)
		if err != nil {
			t.Fatal(err)
		}
		for part := yaml.NewDecoder(strings.NewReader(string(text))); ; {
			var object struct {
				Kind string
				Spec struct {
					PolicyTypes []string `yaml:"policyTypes"`
					PodSelector struct {
						MatchExpressions []struct{ Values []string } `yaml:"matchExpressions"`
					} `yaml:"podSelector"`
				}
			}
			err := part.Decode(&object)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			kinds[object.Kind]++
			if object.Kind != "NetworkPolicy" {
				continue
			}
			if p := object.Spec; len(p.PolicyTypes) != 2 || len(p.PodSelector.MatchExpressions) != 1 ||
				!reflect.DeepEqual(p.PodSelector.MatchExpressions[0].Values, []string{"standings", "standings-rebuild"}) {
				t.Errorf("%+v", p)
			}
		}
	}
	if kinds["Secret"] != 0 || kinds["NetworkPolicy"] != 1 {
		t.Errorf("%v", kinds)
	}
	for _, p := range []pod{podOf(t, "kubernetes.yaml", "Deployment"), podOf(t, "kubernetes-rebuild.yaml", "Job")} {
		if image := p.Spec.Containers[0].Image; image != "${IMAGE}" {
			t.Errorf("the image %s is named otherwise than by the variable that has its version and digest", image)
		}
	}
	if spread := podOf(t, "kubernetes.yaml", "Deployment").Spec.Spread; len(spread) != 2 {
		t.Errorf("%d topology spread constraints", len(spread))
	}
}

// The Job has what the consumers have: else it reads other settings, or can't start.
func TestTheManifestOfARebuildIsTheConsumersWithAnotherCommand(t *testing.T) {
	consumer, rebuild := podOf(t, "kubernetes.yaml", "Deployment"), podOf(t, "kubernetes-rebuild.yaml", "Job")
	const name = "app.kubernetes.io/name"
	if label := rebuild.Metadata.Labels[name]; label == "" || label == consumer.Metadata.Labels[name] {
		t.Errorf("%s %q: the Deployment and the disruption budget would count the Job's pod", name, label)
	}
	for _, p := range []*pod{&consumer, &rebuild} {
		c := &p.Spec.Containers[0]
		if code, _, stderr := execute(t, nil, append(c.Args, "--help")...); code != 0 {
			t.Errorf("%v: exit code %d: %s", c.Args, code, stderr)
		}
		c.Args, p.Metadata.Labels, p.Spec.Spread = nil, nil, nil // a Job has one pod
	}
	if !reflect.DeepEqual(consumer, rebuild) {
		t.Errorf("%+v\n%+v", consumer, rebuild)
	}
}

// The unit of systemd confines the process, and gives a password as operations.md says: by
// LoadCredential, in a file that its setting names.
func TestTheUnitOfSystemdConfinesTheProcessAndGivesPasswordsAsDocumented(t *testing.T) {
	text, err := os.ReadFile("../../deploy/standings.service")
	if err != nil {
		t.Fatal(err)
	}
	guide, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	set := map[string][]string{} // by directive; a line that waits for its # to be taken away, too
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "#"), "="); ok && !strings.Contains(key, " ") {
			set[key] = append(set[key], value)
		}
	}
	for key, want := range map[string][]string{
		"SystemCallFilter":        {"@system-service", "~@privileged @resources"}, // the second takes away of the first
		"SystemCallErrorNumber":   {"EPERM"},
		"SystemCallArchitectures": {"native"},
		"CapabilityBoundingSet":   {""},
		"NoNewPrivileges":         {"yes"},
		"DynamicUser":             {"yes"},
		"LoadCredential":          {"redis-password:/etc/standings/redis-password"},
		"Environment":             {"STANDINGS_REDIS_PASSWORD_FILE=%d/redis-password"},
	} {
		if !reflect.DeepEqual(set[key], want) {
			t.Errorf("%s is %q, want %q", key, set[key], want)
		}
	}
	for _, word := range []string{"LoadCredential", "SystemCallFilter"} {
		if !strings.Contains(string(guide), word) {
			t.Errorf("operations.md doesn't name %s", word)
		}
	}
	name, _, _ := strings.Cut(set["LoadCredential"][0], ":")
	if !strings.HasSuffix(set["Environment"][0], "%d/"+name) {
		t.Errorf("the credential %s isn't the file that the setting names: %s", name, set["Environment"][0])
	}
}
