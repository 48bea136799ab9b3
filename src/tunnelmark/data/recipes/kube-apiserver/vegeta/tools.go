//go:build tools

// Package tools names the command that this recipe builds, so that `go mod tidy` keeps what it needs.
package tools

import (
	_ "github.com/tsenart/vegeta/v12"
)
