"""Node registration, job node lists, fillers. Only `holds` depends on `controllers.pods`."""
