# `tofu test` (or `terraform test`) in this folder: plans only, and without any provider.

variables {
  hosts = {
    alpha = { ssh_address = "192.0.2.11", address = "198.51.100.11", role = "node" }
    beta  = { ssh_address = "192.0.2.12", address = "198.51.100.12", role = "node" }
    gamma = { ssh_address = "192.0.2.13", address = "198.51.100.13", role = "middle" }
  }
  user           = "admin"
  hours          = 8
  at_most        = 50
  price_per_hour = { amount = 1.5, currency = "USD", source = "an example", date = "2026-11-25" }
}

run "the_price_is_hosts_times_hours_times_price" {
  command = plan

  assert {
    condition     = startswith(output.price, "3 hosts for 8 hours at 1.5 USD an hour each: 36.00 USD at most")
    error_message = "The price is wrong: ${output.price}"
  }
}

run "what_costs_more_than_allowed_is_refused" {
  command = plan
  variables { at_most = 35 }
  expect_failures = [output.price]
}

run "a_price_without_a_date_is_refused" {
  command = plan
  variables {
    price_per_hour = { amount = 1.5, currency = "USD", source = "an example", date = "lately" }
  }
  expect_failures = [var.price_per_hour]
}

run "one_node_is_no_lab" {
  command = plan
  variables {
    hosts = { alpha = { ssh_address = "192.0.2.11", address = "198.51.100.11", role = "node" } }
  }
  expect_failures = [var.hosts]
}

run "the_inventory_has_what_the_playbook_reads" {
  command = plan

  assert {
    condition = yamldecode(output.inventory).lab.hosts.gamma == {
      ansible_host = "192.0.2.13", ansible_user = "admin", lab_address = "198.51.100.13", lab_role = "middle"
    }
    error_message = "The inventory is wrong: ${output.inventory}"
  }
}
