"""The templates that a NodeSet has had, as ControllerRevisions."""
