"""SlurmJob as a Kubernetes resource: its fields, its bounds, and the definition that an API server gets.

`metadata`, `spec` and `status` are the fields, typed; `slurmjob` puts them together and reads objects. `schema` turns
these types into what a CustomResourceDefinition may say, `options_schema` the table of sbatch's options, and
`definition` writes the whole definition.
"""
