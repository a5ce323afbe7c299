"""The simulator of hosts: slices of operators share the processors of the hosts they run on."""
