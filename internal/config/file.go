package config

// The file: every value by its path, and on which line it is, where what is misspelt is
// found.

import (
	"fmt"
	"maps"
	"os"
	"slices"

	"go.yaml.in/yaml/v3"
)

// readFile returns the values and lines of a YAML file's sections and settings, none
// without a path.
func readFile(path string) (values map[string]any, lines map[string]int, err error) {
	values, lines = map[string]any{}, map[string]int{}
	if path == "" {
		return values, lines, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, fileProblem(path, err)
	}
	var tree map[string]any
	var document yaml.Node
	if err := yaml.Unmarshal(text, &tree); err != nil {
		return nil, nil, fileProblem(path, err)
	}
	if err := yaml.Unmarshal(text, &document); err != nil {
		return nil, nil, fileProblem(path, err)
	}
	noteValues(tree, "", values)
	for _, root := range document.Content {
		noteLines(root, "", lines)
	}
	return values, lines, nil
}

// noteValues goes through a section, in the order of its keys: a.b beside a, with b in it,
// is the later one. A key that isn't text is as it is written.
func noteValues(tree map[string]any, section string, values map[string]any) {
	for _, key := range slices.Sorted(maps.Keys(tree)) {
		value := tree[key]
		if other, ok := value.(map[any]any); ok {
			below := make(map[string]any, len(other))
			for k, v := range other {
				below[fmt.Sprint(k)] = v
			}
			value = below
		}
		values[section+key] = value
		if below, ok := value.(map[string]any); ok {
			noteValues(below, section+key+".", values)
		}
	}
}

// noteLines goes through a section. An alias isn't followed: its keys are where it is used.
func noteLines(node *yaml.Node, section string, lines map[string]int) {
	if node.Kind != yaml.MappingNode {
		return
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		name := section + node.Content[i].Value
		lines[name] = node.Content[i].Line
		noteLines(node.Content[i+1], name+".", lines)
	}
}
