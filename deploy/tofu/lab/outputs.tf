output "price" {
  description = "What the hosts cost, said by the plan before anything is made."
  value = format(
    "%d hosts for %g hours at %g %s an hour each: %.2f %s at most (list price of %s, looked up on %s: check it before use; disks, addresses, traffic and taxes are not in it)",
    length(var.hosts), var.hours, var.price_per_hour.amount, var.price_per_hour.currency, local.price, var.price_per_hour.currency,
    var.price_per_hour.source, var.price_per_hour.date,
  )

  precondition {
    condition     = local.price <= var.at_most
    error_message = format("This would cost %.2f %s, and at_most is %g: nothing is made.", local.price, var.price_per_hour.currency, var.at_most)
  }
}

output "inventory" {
  description = "The hosts as deploy/ansible reads them."
  value       = yamlencode(local.inventory)
}
