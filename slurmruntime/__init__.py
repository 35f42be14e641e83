"""What all our controllers need. It knows no pod, no placeholder and no NodeSet."""
