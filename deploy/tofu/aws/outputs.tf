output "price" {
  description = "What the hosts cost, said by the plan before anything is made."
  value       = module.lab.price
}

output "inventory" {
  description = "The hosts as deploy/ansible reads them: `tofu output -raw inventory > inventory.yml`."
  value       = module.lab.inventory
}
