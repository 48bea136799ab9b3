//go:build tools

// Package tools names the commands that this recipe builds, so that `go mod tidy` keeps what they need.
package tools

import (
	_ "golang.zx2c4.com/wireguard"
)
