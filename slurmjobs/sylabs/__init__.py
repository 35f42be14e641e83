"""The kinds of Sylabs' operators, SlurmJob and WlmJob, so that old manifests still work.

`spec` has their typed fields, from which `deploy/sylabs_definitions.py` writes CustomResourceDefinitions. `translation`
turns an object into a SlurmJob of ours, `container` writes the script of one that names an image, and `job` decodes objects
into what the controller of SlurmJobs works with. `site` holds an administrator's settings about old manifests. Everything here is pure.
"""
