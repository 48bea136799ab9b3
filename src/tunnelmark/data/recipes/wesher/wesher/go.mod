module tunnelmark.invalid/peers/wesher

go 1.21

require github.com/costela/wesher v0.2.6

require (
	github.com/armon/go-metrics v0.0.0-20190430140413-ec5e00d3c878 // indirect
	github.com/cenkalti/backoff v2.2.1+incompatible // indirect
	github.com/google/btree v1.0.0 // indirect
	github.com/hashicorp/errwrap v1.0.0 // indirect
	github.com/hashicorp/go-immutable-radix v1.1.0 // indirect
	github.com/hashicorp/go-msgpack v0.5.5 // indirect
	github.com/hashicorp/go-multierror v1.0.0 // indirect
	github.com/hashicorp/go-sockaddr v1.0.2 // indirect
	github.com/hashicorp/golang-lru v0.5.3 // indirect
	github.com/hashicorp/memberlist v0.1.4 // indirect
	github.com/konsorten/go-windows-terminal-sequences v1.0.2 // indirect
	github.com/mattn/go-isatty v0.0.9 // indirect
	github.com/mdlayher/genetlink v0.0.0-20190828143517-e35f2bf499b9 // indirect
	github.com/mdlayher/netlink v0.0.0-20190906145618-4e5dd4017dae // indirect
	github.com/miekg/dns v1.1.16 // indirect
	github.com/pelletier/go-toml v1.2.0 // indirect
	github.com/pkg/errors v0.8.1 // indirect
	github.com/sean-/seed v0.0.0-20170313163322-e2103e2c3529 // indirect
	github.com/sirupsen/logrus v1.4.2 // indirect
	github.com/stevenroose/gonfig v0.1.4 // indirect
	github.com/vishvananda/netlink v1.0.0 // indirect
	github.com/vishvananda/netns v0.0.0-20190625233234-7109fa855b0f // indirect
	golang.org/x/crypto v0.0.0-20190927123631-a832865fa7ad // indirect
	golang.org/x/net v0.0.0-20190930134127-c5a3c61f89f3 // indirect
	golang.org/x/sys v0.0.0-20190927073244-c990c680b611 // indirect
	golang.zx2c4.com/wireguard v0.0.20190908 // indirect
	golang.zx2c4.com/wireguard/wgctrl v0.0.0-20190925195211-ef61b881e46f // indirect
	gopkg.in/yaml.v2 v2.2.2 // indirect
)
