# Hosts at Amazon, two nodes and a middle one if nothing else is said, near each other in one private network, which end themselves when their hours are over.
# The comparison of wireguard-go that `tunnelmark run wireguard-go-offloads` repeats had two such machines (c6i.8xlarge, one zone).

terraform {
  required_version = ">= 1.6"
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 5.100, < 7"
    }
  }
}

provider "aws" {
  region = var.region

  default_tags {
    tags = { Name = var.name }
  }
}

locals {
  vxlan_port = 4789 # as in hosts.toml
  addresses  = { for place, name in keys(var.hosts) : name => cidrhost(var.network, 11 + place) }
}

# ------------------------------------------------------------------------------------------------------------ network

resource "aws_vpc" "lab" {
  cidr_block = var.network
}

resource "aws_subnet" "lab" {
  vpc_id                  = aws_vpc.lab.id
  cidr_block              = var.network
  availability_zone       = var.zone
  map_public_ip_on_launch = true
}

resource "aws_internet_gateway" "lab" {
  vpc_id = aws_vpc.lab.id
}

resource "aws_route_table" "lab" {
  vpc_id = aws_vpc.lab.id
}

resource "aws_route" "out" {
  route_table_id         = aws_route_table.lab.id
  destination_cidr_block = "0.0.0.0/0"
  gateway_id             = aws_internet_gateway.lab.id
}

resource "aws_route_table_association" "lab" {
  subnet_id      = aws_subnet.lab.id
  route_table_id = aws_route_table.lab.id
}

# ----------------------------------------------------------------------------------------------------------- firewall

resource "aws_security_group" "lab" {
  name        = var.name
  description = "SSH from one address, VXLAN among the hosts, everything out"
  vpc_id      = aws_vpc.lab.id
}

resource "aws_vpc_security_group_ingress_rule" "ssh" {
  security_group_id = aws_security_group.lab.id
  description       = "the machine with the command"
  cidr_ipv4         = var.ssh_from
  ip_protocol       = "tcp"
  from_port         = 22
  to_port           = 22
}

resource "aws_vpc_security_group_ingress_rule" "vxlan" {
  security_group_id            = aws_security_group.lab.id
  description                  = "links of the lab"
  referenced_security_group_id = aws_security_group.lab.id
  ip_protocol                  = "udp"
  from_port                    = local.vxlan_port
  to_port                      = local.vxlan_port
}

resource "aws_vpc_security_group_egress_rule" "out" {
  security_group_id = aws_security_group.lab.id
  description       = "packages"
  cidr_ipv4         = "0.0.0.0/0"
  ip_protocol       = "-1"
}

# -------------------------------------------------------------------------------------------------------------- hosts

data "aws_ami" "debian" {
  most_recent = true
  owners      = ["136693071363"] # Debian's own account

  filter {
    name   = "name"
    values = ["debian-13-${var.architecture}-*"]
  }
}

resource "aws_key_pair" "lab" {
  key_name   = var.name
  public_key = var.ssh_public_key
}

# Without it one flow gets 5 Gbit/s at most, with it 10 (Amazon's user guide, "instance network bandwidth").
resource "aws_placement_group" "lab" {
  name     = var.name
  strategy = "cluster"
}

resource "aws_instance" "host" {
  for_each = var.hosts

  ami                         = data.aws_ami.debian.id
  instance_type               = var.machine
  key_name                    = aws_key_pair.lab.key_name
  placement_group             = aws_placement_group.lab.name
  subnet_id                   = aws_subnet.lab.id
  private_ip                  = local.addresses[each.key]
  associate_public_ip_address = true
  vpc_security_group_ids      = [aws_security_group.lab.id]

  # A host that is forgotten costs money: each ends itself, and its disk with it.
  instance_initiated_shutdown_behavior = "terminate"
  user_data                            = "#!/bin/sh\nexec shutdown -h +${ceil(60 * var.hours)}\n"

  root_block_device {
    volume_size           = var.disk
    volume_type           = "gp3"
    encrypted             = true
    delete_on_termination = true
  }

  metadata_options {
    http_tokens = "required"
  }

  tags = { Name = "${var.name}-${each.key}" }
}

# ------------------------------------------------------------------------------------------------- price and inventory

module "lab" {
  source = "../lab"

  hosts = {
    for name, role in var.hosts : name => {
      ssh_address = aws_instance.host[name].public_ip
      address     = local.addresses[name]
      role        = role
    }
  }
  user           = "admin" # of Debian's images
  mtu            = 9001    # of Amazon's private networks; towards the Internet it is 1500
  hours          = var.hours
  price_per_hour = var.price_per_hour
  at_most        = var.at_most
}
