"""The kinds of Sylabs' operators, which old manifests are written for: SlurmJob and WlmJob.

`spec` has their fields, typed, and `definition` makes CustomResourceDefinitions of them. `translation` says what one of
them means as a SlurmJob of ours, `container` writes the script of one that names an image, and `job` reads them from JSON
as what the controller of SlurmJobs works with. `site` is what an administrator says about old manifests.

`slurm_config` reads the ConfigMap in which their resource daemon had what lies behind each node, and `inventory` decides
what is written on the nodes of it. Everything here is pure.
"""
