"""SlurmJob as a Kubernetes resource: its fields and their bounds.

`spec` and `status` are the typed fields, from which `deploy/job_definition.py` writes the CustomResourceDefinition;
`slurmjob` puts them together and decodes objects.
"""
