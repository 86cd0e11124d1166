package config

// On which line of the file a key is: what is misspelt is found there.

import (
	"os"

	"go.yaml.in/yaml/v3"
)

// keyLines are the lines of all keys of a YAML file, by their paths. It is empty where the
// file can't be read: who loads it says why.
func keyLines(path string) map[string]int {
	lines := map[string]int{}
	text, err := os.ReadFile(path)
	if err != nil {
		return lines
	}
	var document yaml.Node
	if yaml.Unmarshal(text, &document) != nil || len(document.Content) == 0 {
		return lines
	}
	noteLines(document.Content[0], "", lines)
	return lines
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
