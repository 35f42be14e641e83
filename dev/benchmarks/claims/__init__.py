"""What a resource claim adds to a pod's way to its node, beside what Kubernetes' own scheduler needs for one."""
