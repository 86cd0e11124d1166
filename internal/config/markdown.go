package config

import (
	"fmt"
	"io"
	"strings"
)

// The document of all settings, made of their declarations.

// WriteMarkdown writes the declarations, whatever this process's configuration is.
func WriteMarkdown(w io.Writer) error {
	var b strings.Builder
	b.WriteString(`# Configuration

Made by ` + "`consumer config --markdown`" + `. ` + "`consumer config`" + ` shows the values, and where each comes
from: the environment overrides the file, the file the default. A YAML file is named by
` + "`--config`" + ` or ` + "`" + FileVariable + "`" + `; there a key's dots are sections. An empty value is the same as none.
At start every wrong setting is listed, with its place and what would be right; the exit code is 2.

**Can't be changed later** marks a setting that decides how standings are stored. Redis keeps it beside the
boards, and a consumer that is configured otherwise refuses to start. Choose these before the first start; to
change one later takes a second group and prefix beside the first:
[Change a fixed setting](changes.md#change-a-fixed-setting).

What else decides what a record results in can be changed in a rolling way, one replica after the other: ` + "`boards`" + `,
` + "`event.fields`, `event.duplicates`, `max_event_bytes`, `max_future`, `lateness`" + `. A record counts by one configuration,
that of the replica that began its batch, whoever finishes it. What has counted stays as it is; a rebuild
counts all of the log by the configuration that it runs with.

Sizes: ` + "`64KiB`, `1MiB`" + ` or a number of bytes. Durations: ` + "`500ms`, `10s`, `24h`, `60d`, `2w`" + `. Lists: a YAML list,
or text with commas.
`)
	for _, c := range chapters(&Config{}) {
		fmt.Fprintf(&b, "\n## %s\n\n", c.title)
		if c.intro != "" {
			fmt.Fprintf(&b, "%s\n\n", c.intro)
		}
		b.WriteString("| key, and its variable | default | range | meaning |\n|---|---|---|---|\n")
		for _, o := range c.options {
			writeRow(&b, fmt.Sprintf("`%s` `%s`", o.Key, o.Variable()), o)
		}
		if c.title == "Periods" {
			writeOwnPeriods(&b)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// writeOwnPeriods is the part on periods whose names aren't known.
func writeOwnPeriods(b *strings.Builder) {
	b.WriteString(`
### Periods of your own

Beside the built-in periods there can be others, up to 32 in all, each under a name of its own: 1 to 32 small
letters, digits and hyphens, a letter first. A period is one of three kinds: a calendar, a season, or windows of
equal length that follow each other:

` + "```yaml" + `
periods:
  weekly-us: {calendar: weekly, time_zone: America/New_York, week_start: sunday}
  season-4:  {start: 2026-12-01T00:00:00Z, end: 2027-03-01T00:00:00Z}
  sprint:    {every: 72h, from: 2026-01-01T00:00:00Z}
` + "```" + `

An event before a season's start, or at its end or later, isn't in it. Periods [can be added](changes.md#add-a-period)
at any time. ` + "`consumer config`" + ` shows the windows of each
period; [reading.md](reading.md#names-of-windows) has their names. In the environment a name's hyphens are underscores, and
everything is in capitals.

| key | default | range | meaning |
|---|---|---|---|
`)
	for _, o := range ownOptions(&Period{Name: "<name>"}) {
		writeRow(b, "`"+o.Key+"`", o)
	}
}

func writeRow(b *strings.Builder, key string, o option) {
	def := "`" + o.def + "`"
	if o.def == "" {
		def = ""
	}
	doc := o.doc
	switch {
	case o.Fixed && strings.HasSuffix(o.Key, ".enabled"):
	case o.Fixed && o.ChangedBy == "":
		doc += " **Can't be changed later.**"
	case o.Fixed:
		doc += " **Can't be changed later**, but by `" + o.ChangedBy + "`."
	case o.ChangedBy != "":
		doc += " The fields and the score of one **can't be changed later**, but by `" + o.ChangedBy + "`."
	}
	fmt.Fprintf(b, "| %s | %s | %s | %s |\n", key, def, o.value.rule, doc)
}
