package main

import (
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
		SecurityContext map[string]any `yaml:"securityContext"`
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
		c.Args, p.Metadata.Labels = nil, nil
	}
	if !reflect.DeepEqual(consumer, rebuild) {
		t.Errorf("%+v\n%+v", consumer, rebuild)
	}
}
