variable "ssh_from" {
  description = "The address from which ssh is let in, such as 203.0.113.7/32."
  type        = string

  validation {
    condition     = can(cidrhost(var.ssh_from, 0)) && can(regex("/(2[4-9]|3[0-2])$", var.ssh_from))
    error_message = "Name an IPv4 address or a small network, from /24 to /32: the hosts are not for everyone."
  }
}

variable "ssh_public_key" {
  description = "The public half of your key, the text of a file such as ~/.ssh/id_ed25519.pub."
  type        = string
}

variable "hours" {
  description = "How long the hosts are rented, set-up and removal included; then they end themselves."
  type        = number
}

variable "price_per_hour" {
  description = "What one host costs an hour: amount, currency, source (where it is published), date (when you looked)."
  type = object({
    amount   = number
    currency = string
    source   = string
    date     = string
  })
}

variable "at_most" {
  description = "Nothing is made that would cost more than this, in the same currency."
  type        = number
}

variable "hosts" {
  description = "Each host and what it is for: as many nodes as the topology has, and the middle one that links run through."
  type        = map(string)
  default     = { alpha = "node", beta = "node", gamma = "middle" }
}

variable "machine" {
  description = "The type of each host; it has to allow cluster placement groups."
  type        = string
  default     = "c6i.8xlarge"
}

variable "architecture" {
  description = "amd64 or arm64, as the machine has it."
  type        = string
  default     = "amd64"
}

variable "region" {
  description = "Where the hosts are; the price depends on it."
  type        = string
  default     = "us-east-1"
}

variable "zone" {
  description = "The zone of all hosts, such as us-east-1a; null: Amazon chooses."
  type        = string
  default     = null
}

variable "network" {
  description = "The private network of the hosts."
  type        = string
  default     = "10.77.0.0/24"
}

variable "disk" {
  description = "Size of each host's disk, in GB."
  type        = number
  default     = 40
}

variable "name" {
  description = "The name of all that is made."
  type        = string
  default     = "tunnelmark"
}
