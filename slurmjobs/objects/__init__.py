"""SlurmJob as a Kubernetes resource: its fields, its bounds, and the definition that an API server gets.

`spec` and `status` are the fields, typed; `slurmjob` puts them together and reads objects. `options_schema` turns the
table of sbatch's options into a schema, and `definition` writes the whole definition.
"""
