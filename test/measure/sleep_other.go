//go:build !linux

package main

import "time"

func exactly() {}

func sleep(d time.Duration) { time.Sleep(d) }
