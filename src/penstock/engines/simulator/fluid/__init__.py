"""The simulator at the resolution of seconds: records flow through queues."""
