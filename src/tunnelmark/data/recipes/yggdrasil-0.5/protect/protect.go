// Package protect stands in for suah.dev/protect, which confines a program on OpenBSD and does nothing on Linux.
package protect

func Pledge(promises string) error { return nil }
func Unveil(path string, flags string) error { return nil }
func UnveilBlock() error { return nil }
