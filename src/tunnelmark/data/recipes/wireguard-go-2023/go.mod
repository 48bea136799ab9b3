module tunnelmark.invalid/peers/wireguard-go-2023

go 1.21

require golang.zx2c4.com/wireguard v0.0.0-20230325221338-052af4a8072b

require (
	golang.org/x/crypto v0.6.0 // indirect
	golang.org/x/net v0.7.0 // indirect
	golang.org/x/sys v0.5.1-0.20230222185716-a3b23cc77e89 // indirect
	golang.zx2c4.com/wintun v0.0.0-20230126152724-0fa3db229ce2 // indirect
)
