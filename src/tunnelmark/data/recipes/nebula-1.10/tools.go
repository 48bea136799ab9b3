//go:build tools

// Package tools names the commands that this recipe builds, so that `go mod tidy` keeps what they need.
package tools

import (
	_ "github.com/slackhq/nebula/cmd/nebula"
	_ "github.com/slackhq/nebula/cmd/nebula-cert"
)
