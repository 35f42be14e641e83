"""SlurmJob as a Kubernetes resource: its fields, their bounds, and its CustomResourceDefinition.

`spec` and `status` are the typed fields; `slurmjob` puts them together and decodes objects. `options_schema` turns the
table of sbatch's options into a schema, and `definition` writes the CustomResourceDefinition.
"""
