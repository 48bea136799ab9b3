variable "hosts" {
  description = "Each host by its name: where ssh reaches it, its address on the network that carries the links, and what it is for."
  type = map(object({
    ssh_address = string
    address     = string
    role        = string
  }))

  validation {
    condition     = alltrue([for name in keys(var.hosts) : can(regex("^[a-z0-9][a-z0-9.-]*$", name))])
    error_message = "A host's name has small letters, digits, dots and hyphens (docs/hosts.md)."
  }
  validation {
    condition     = alltrue([for host in values(var.hosts) : contains(["node", "middle"], host.role)])
    error_message = "A host's role is node or middle."
  }
  validation {
    condition     = length([for host in values(var.hosts) : host if host.role == "node"]) >= 2
    error_message = "A lab needs two hosts of the role node."
  }
}

variable "user" {
  description = "The user that ssh logs in as; it becomes root by sudo, or is root."
  type        = string
}

variable "mtu" {
  description = "The MTU that the hosts' network has, which the playbook then sets; null: it is left as it is."
  type        = number
  default     = null
}

variable "hours" {
  description = "How long the hosts are rented, set-up and removal included."
  type        = number

  validation {
    condition     = var.hours > 0
    error_message = "hours must be more than 0: `tunnelmark plan price STUDY` says how many a study takes."
  }
}

variable "price_per_hour" {
  description = "What one host costs an hour, who says so, and when you looked. Prices change: none is assumed."
  type = object({
    amount   = number
    currency = string
    source   = string
    date     = string
  })

  validation {
    condition     = var.price_per_hour.amount > 0 && length(var.price_per_hour.source) > 0
    error_message = "State the list price of one host for an hour, and where it is published."
  }
  validation {
    condition     = can(regex("^[0-9]{4}-[0-9]{2}-[0-9]{2}$", var.price_per_hour.date))
    error_message = "State the day on which you looked at the price, such as 2026-11-25."
  }
}

variable "at_most" {
  description = "Nothing is made that would cost more than this, in the same currency."
  type        = number
}
