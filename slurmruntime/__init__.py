"""What any controller of ours needs. It knows no pod, no placeholder and no NodeSet."""
