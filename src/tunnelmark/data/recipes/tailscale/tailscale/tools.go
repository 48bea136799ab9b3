//go:build tools

// Package tools names the commands that this recipe builds, so that `go mod tidy` keeps what they need.
package tools

import (
	_ "tailscale.com/cmd/tailscaled"
	_ "tailscale.com/cmd/tailscale"
	_ "tailscale.com/cmd/derper"
)
