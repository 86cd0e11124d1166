package config

// The configuration file: every value by its path, and its line, for messages about unknown keys.

import (
	"maps"
	"os"
	"slices"

	"go.yaml.in/yaml/v3"
)

// readFile returns the values and lines of the sections and settings of a YAML file. It returns none without a
// path.
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

// noteValues collects the values of a section, in the order of its keys. If a section has both a key a with b in
// it and a key a.b, the latter wins, because it is later in that order. A key that is not text is taken as it is
// written.
func noteValues(tree map[string]any, section string, values map[string]any) {
	for _, key := range slices.Sorted(maps.Keys(tree)) {
		value := tree[key]
		if below, ok := asSection(value); ok && value != nil {
			value = below
			noteValues(below, section+key+".", values)
		}
		values[section+key] = value
	}
}

// noteLines collects the lines of a section's keys. It does not follow aliases: their keys have the line of
// their use.
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
