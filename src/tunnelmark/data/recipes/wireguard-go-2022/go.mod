module tunnelmark.invalid/peers/wireguard-go-2022

go 1.23.0

require golang.zx2c4.com/wireguard v0.0.0-20220920152132-bb719d3a6e2c

require golang.org/x/net v0.38.0 // indirect

require golang.org/x/sys v0.31.0 // indirect

require golang.org/x/crypto v0.36.0 // indirect

require golang.zx2c4.com/wintun v0.0.0-20211104114900-415007cec224 // indirect
