# What does not depend on who rents the hosts out: their price, and the inventory that deploy/ansible reads. It makes nothing and needs no provider.

terraform {
  required_version = ">= 1.6"
}

locals {
  machine_hours = length(var.hosts) * var.hours
  price         = local.machine_hours * var.price_per_hour.amount

  inventory = {
    lab = {
      hosts = {
        for name, host in var.hosts : name => merge(
          { ansible_host = host.ssh_address, ansible_user = var.user, lab_address = host.address, lab_role = host.role },
          var.mtu == null ? {} : { lab_mtu = var.mtu },
        )
      }
    }
  }
}
