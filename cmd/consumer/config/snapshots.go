package config

// Where snapshots are kept: a URL, and what goes with it.

import (
	"errors"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
)

// Kinds of places for snapshots: the schemes of snapshots.url.
const (
	SnapshotsDir     = "dir"
	SnapshotsS3      = "s3"
	SnapshotsArchive = "archive"
)

// Place is snapshots.url: its kind, and of a directory the path, of a bucket its name and the prefix of
// all names in it, without slashes at its ends.
type Place struct{ Kind, Path, Bucket, Prefix string }

// bucketForm is what AWS allows, but for a few that it reserves.
var bucketForm = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)

// Place reads the URL. There is none where it is empty.
func (c *Snapshots) Place() (p Place, err error) {
	kind, rest, _ := strings.Cut(c.URL, ":")
	p.Kind = kind
	switch {
	case kind == SnapshotsDir && rest != "":
		if !filepath.IsAbs(rest) {
			return p, errors.New("has a path that isn't absolute: write dir:/path")
		}
		p.Path = filepath.Clean(rest)
		return p, nil
	case kind == SnapshotsArchive && rest == "":
		return p, nil
	case kind == SnapshotsS3 && strings.HasPrefix(rest, "//"):
		p.Bucket, p.Prefix, _ = strings.Cut(rest[2:], "/")
		p.Prefix = strings.Trim(p.Prefix, "/")
		switch {
		case strings.Contains(p.Bucket, "@"):
			return p, errors.New("has a user: keys go into snapshots.s3.access_key and secret_key")
		case !bucketForm.MatchString(p.Bucket):
			return p, errors.New("names no bucket: 3 to 63 lower-case letters, digits, `.` and `-`, as in s3://bucket/prefix")
		case strings.ContainsAny(p.Prefix, "?#\\") || strings.Contains("/"+p.Prefix+"/", "/../") || strings.Contains(p.Prefix, "//"):
			return p, errors.New("has a prefix that isn't names with single slashes between")
		}
		return p, nil
	}
	return p, errors.New("is none of dir:/path, s3://bucket/prefix and archive:")
}

func snapshotsURL(text string) error {
	if text == "" {
		return nil
	}
	_, err := (&Snapshots{URL: text}).Place()
	return err
}

func s3Endpoint(text string) error {
	if text == "" {
		return nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.User != nil {
		return errors.New("isn't https://host:port or http://host:port")
	}
	return nil
}

// validateSnapshots holds what is said of snapshots together.
func validateSnapshots(cfg *Config, complain func(key, problem string, args ...any)) {
	s := &cfg.Snapshots
	place, _ := s.Place()
	switch {
	case place.Kind == SnapshotsArchive && cfg.Archive.URL == "":
		complain("snapshots.url", "is archive:, but archive.url isn't set")
	case place.Kind == SnapshotsS3 && s.S3.AccessKey != "" && s.S3.SecretKey == "":
		complain("snapshots.s3.access_key", "is set, but snapshots.s3.secret_key isn't")
	case s.S3.SecretKey != "" && s.S3.AccessKey == "":
		complain("snapshots.s3.secret_key", "is set, but snapshots.s3.access_key isn't")
	}
}
