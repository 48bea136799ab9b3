//go:build tools

// Package tools names the commands that this recipe builds, so that `go mod tidy` keeps what they need.
package tools

import (
	_ "github.com/netbirdio/netbird/client"
	_ "github.com/netbirdio/netbird/management"
	_ "github.com/netbirdio/netbird/relay"
	_ "github.com/netbirdio/netbird/signal"
)
