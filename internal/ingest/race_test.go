//go:build race

package ingest

func init() { detecting = true }
