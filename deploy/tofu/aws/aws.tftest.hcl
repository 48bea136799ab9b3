# `tofu test` (or `terraform test`) in this folder: plans with a mock of the provider, without an account. Nothing is made.

mock_provider "aws" {}

variables {
  ssh_from       = "203.0.113.7/32"
  ssh_public_key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f me@laptop"
  hours          = 8
  at_most        = 50
  price_per_hour = { amount = 1.5, currency = "USD", source = "an example", date = "2026-11-25" }
}

run "three_hosts_and_their_price" {
  command = plan

  assert {
    condition     = length(aws_instance.host) == 3 && startswith(output.price, "3 hosts for 8 hours at 1.5 USD an hour each: 36.00 USD at most")
    error_message = "The price is wrong: ${output.price}"
  }
  assert {
    condition     = distinct([for host in aws_instance.host : host.instance_type]) == tolist(["c6i.8xlarge"])
    error_message = "All hosts are of one type."
  }
  assert {
    condition     = aws_instance.host["alpha"].private_ip == "10.77.0.11" && aws_instance.host["gamma"].private_ip == "10.77.0.13"
    error_message = "The addresses are those of the inventory."
  }
}

run "a_topology_of_three_nodes_takes_four_hosts" {
  command = plan
  variables {
    hosts = { alpha = "node", beta = "node", delta = "node", gamma = "middle" }
  }

  assert {
    condition     = length(aws_instance.host) == 4 && startswith(output.price, "4 hosts for 8 hours at 1.5 USD an hour each: 48.00 USD at most")
    error_message = "The price is wrong: ${output.price}"
  }
  assert {
    condition     = length(distinct([for host in aws_instance.host : host.private_ip])) == 4
    error_message = "Each host has an address of its own."
  }
}

run "nothing_comes_in_but_ssh_from_one_address_and_vxlan_from_the_hosts" {
  command = plan

  assert {
    condition = (
      aws_vpc_security_group_ingress_rule.ssh.cidr_ipv4 == "203.0.113.7/32" && aws_vpc_security_group_ingress_rule.ssh.ip_protocol == "tcp"
      && aws_vpc_security_group_ingress_rule.ssh.from_port == 22 && aws_vpc_security_group_ingress_rule.ssh.to_port == 22
    )
    error_message = "SSH comes from elsewhere, too."
  }
  assert {
    condition = (
      aws_vpc_security_group_ingress_rule.vxlan.cidr_ipv4 == null && aws_vpc_security_group_ingress_rule.vxlan.ip_protocol == "udp"
      && aws_vpc_security_group_ingress_rule.vxlan.from_port == 4789 && aws_vpc_security_group_ingress_rule.vxlan.to_port == 4789
    )
    error_message = "VXLAN comes from elsewhere, too."
  }
}

run "hosts_end_themselves" {
  command = plan

  assert {
    condition = alltrue([
      for host in aws_instance.host : host.instance_initiated_shutdown_behavior == "terminate" && endswith(host.user_data, "shutdown -h +480\n")
    ])
    error_message = "A host that is forgotten would go on."
  }
}

run "ssh_from_everywhere_is_refused" {
  command = plan
  variables { ssh_from = "0.0.0.0/0" }
  expect_failures = [var.ssh_from]
}
