package config

import (
	"strings"
	"testing"
)

func TestSnapshotsGoToAPlaceThatCanBeOne(t *testing.T) {
	for _, c := range []struct{ yaml, key, says string }{
		{"{url: 'dir:/var/lib/standings/snapshots', interval: 15m, keep: 4}", "", ""},
		{"{url: 's3://boards/live/eu'}", "", ""},
		{"{url: 's3://boards/', s3: {endpoint: 'http://minio:9000', path_style: true, access_key: a, secret_key: b}}", "", ""},
		{"{url: 'dir:snapshots'}", "snapshots.url", "isn't absolute"},
		{"{url: 'dir:'}", "snapshots.url", "is none of dir:/path"},
		{"{url: '/var/lib'}", "snapshots.url", "is none of dir:/path"},
		{"{url: 's3:boards'}", "snapshots.url", "is none of dir:/path"},
		{"{url: 's3://Boards'}", "snapshots.url", "names no bucket"},
		{"{url: 's3://key@boards'}", "snapshots.url", "has a user"},
		{"{url: 's3://boards/a/../b'}", "snapshots.url", "single slashes"},
		{"{url: 'archive:'}", "snapshots.url", "archive.url isn't set"},
		{"{interval: 10s}", "snapshots.interval", "out of range"},
		{"{keep: 0}", "snapshots.keep", "out of range"},
		{"{s3: {endpoint: 'minio:9000'}}", "snapshots.s3.endpoint", "isn't https://host:port"},
		{"{s3: {endpoint: 'https://me:secret@minio'}}", "snapshots.s3.endpoint", "isn't https://host:port"},
		{"{url: 's3://boards', s3: {access_key: a}}", "snapshots.s3.access_key", "secret_key isn't"},
		{"{s3: {secret_key: a}}", "snapshots.s3.secret_key", "access_key isn't"},
	} {
		found := problems(t, "snapshots: "+c.yaml)
		if p := found[c.key]; c.says != "" && (p == nil || !strings.Contains(p.Error(), c.says)) || len(found) > 1 || c.says == "" && len(found) > 0 {
			t.Errorf("%s: %v", c.yaml, found)
		}
	}
}
